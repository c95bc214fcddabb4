#include "cluster/members/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/members/member_lab_for_test.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> NamesSeenBy(LabMember& member) {
  std::vector<std::string> names;
  for (const NodeRecord& node : member->nodes()) names.push_back(node.name);
  return names;
}

std::string LeaderSeenBy(LabMember& member) {
  return member->leader() ? member->leader()->node : "nobody";
}

std::uint64_t EpochSeenBy(LabMember& member) {
  return member->plan() ? member->plan()->stamp.epoch : 0;
}

// What becomes of a plan that `member` writes.
Result<PlanStamp> Write(MemberLab& lab, LabMember& member, int content) {
  TROUPE_RETURN_IF_ERROR(member->WritePlan(Json(content), lab.now()));
  lab.Settle();
  const MemberNews news = member->TakeNews();
  if (!news.written) return Error(Code::kInternal, "no outcome");
  return *news.written;
}

TEST(Membership, ANodeAloneIsListedAndLeads) {
  MemberLab lab;
  LabMember& a = lab.Add("a");
  EXPECT_EQ(a->state(), MemberState::kMember);
  EXPECT_EQ(a->problem(), "");
  ASSERT_THAT(NamesSeenBy(a), ElementsAre("a"));
  EXPECT_EQ(a->nodes()[0].address, "a:7400");
  EXPECT_TRUE(a->leads());
  EXPECT_EQ(a->leader()->revision, lab.state().Find("/troupe/lab/leader")->created);
  EXPECT_TRUE(a->plan_wanted());
  const MemberNews news = a->TakeNews();
  EXPECT_TRUE(news.state && news.nodes && news.leader && news.plan_wanted);
  EXPECT_FALSE(a->TakeNews().state);
}

TEST(Membership, AStoreThatTakesNothingKeepsANewcomerWaitingWhichIsNewsOnceForALeasesTime) {
  MemberLab lab;
  lab.Add("here");
  LabMember& newcomer = lab.AddUnsettled("newcomer");
  newcomer.set_refuses_writes(true);
  lab.Advance(9'000'000'000);
  EXPECT_FALSE(newcomer->kept_waiting());
  int times = 0;
  for (int i = 0; i < 60; ++i) {
    lab.Advance(1'000'000'000);
    times += newcomer->TakeNews().kept_waiting ? 1 : 0;
  }
  EXPECT_EQ(times, 1);
  EXPECT_TRUE(newcomer->kept_waiting());
  EXPECT_EQ(newcomer->state(), MemberState::kJoining);
  EXPECT_EQ(newcomer->problem(), "no space");
  newcomer.set_refuses_writes(false);
  lab.Advance(2'000'000'000);
  EXPECT_EQ(newcomer->state(), MemberState::kMember);
  EXPECT_FALSE(newcomer->kept_waiting());
}

TEST(Membership, AStoreOfAnotherAuthorityIsDistrustedOnlyIfItWasNeverHeardOf) {
  MemberLab lab;
  LabMember& never = lab.Add("never", "", "9f", KvFault::kDistrusted);
  LabMember& once = lab.Add("once");
  once.set_cut_off(true, KvFault::kDistrusted);
  EXPECT_EQ(never->state(), MemberState::kJoining) << "another endpoint may be right";
  lab.Advance(11'000'000'000);
  EXPECT_EQ(never->state(), MemberState::kDistrusted);
  EXPECT_NE(never->problem(), "");
  EXPECT_EQ(once->state(), MemberState::kWithoutStore);
}

// What other clusters keep in the same store.
void PutKey(MemberLab& lab, const std::string& key) {
  (void)lab.state().Answer(1, KvTransaction{.puts = {{.key = key, .value = "{}"}}}, lab.now());
}

TEST(Membership, TheFirstClusterOfAStoreBeginsAndSaysSo) {
  MemberLab lab;
  LabMember& a = lab.Add("a");
  EXPECT_EQ(a->state(), MemberState::kMember);
  EXPECT_TRUE(a->TakeNews().begins);
  EXPECT_TRUE(a->other_clusters().empty());
  EXPECT_FALSE(lab.Add("b")->TakeNews().begins);
}

TEST(Membership, ANameThatAStoreWithOtherClustersDoesNotHaveIsNotListed) {
  MemberLab lab;
  PutKey(lab, "/troupe/lap/plan");
  PutKey(lab, "/troupe/prod/nodes/x");
  LabMember& a = lab.Add("a");
  EXPECT_EQ(a->state(), MemberState::kUnknown);
  EXPECT_THAT(a->problem(), HasSubstr("'lap' and 'prod': did you mean 'lap'?"));
  lab.Advance(60 * kFakeSecond);
  EXPECT_EQ(lab.state().Find("/troupe/lab/nodes/a"), nullptr);
}

TEST(Membership, OfAClusterThatIsNotThereAnyMoreItsPlanIsKnown) {
  MemberLab lab;
  PutKey(lab, "/troupe/prod/plan");
  PutKey(lab, "/troupe/lab/plan");
  LabMember& a = lab.Add("a");
  EXPECT_EQ(a->state(), MemberState::kMember);
  EXPECT_FALSE(a->TakeNews().begins);
}

TEST(Membership, ThreeThatBeginANewClusterBesideAnotherAtTheSameTimeAreListed) {
  MemberLab lab;
  PutKey(lab, "/troupe/prod/plan");
  lab.set_new_cluster(true);
  std::vector<LabMember*> members;
  for (const char* name : {"a", "b", "c"}) members.push_back(&lab.AddUnsettled(name));
  lab.Settle();
  for (LabMember* member : members) {
    EXPECT_THAT(NamesSeenBy(*member), ElementsAre("a", "b", "c"));
    EXPECT_THAT((*member)->other_clusters(), ElementsAre("prod"));
  }
}

TEST(Membership, AStoreThatForgetsAClusterWhileItServesDoesNotEndIt) {
  MemberLab lab;
  LabMember& a = lab.Add("a");
  PutKey(lab, "/troupe/prod/plan");
  (void)lab.state().Answer(
      1, KvTransaction{.deletes = {"/troupe/lab/nodes/a", "/troupe/lab/leader"}}, lab.now());
  lab.Settle();
  lab.Advance(30 * kFakeSecond);
  EXPECT_EQ(a->state(), MemberState::kMember);
}

TEST(Membership, OneLeadsAndAllKnowIt) {
  MemberLab lab;
  LabMember& a = lab.Add("a");
  LabMember& b = lab.Add("b");
  LabMember& c = lab.Add("c");
  for (LabMember* member : {&a, &b, &c}) {
    EXPECT_THAT(NamesSeenBy(*member), ElementsAre("a", "b", "c"));
    EXPECT_EQ(LeaderSeenBy(*member), "a");
  }
  EXPECT_TRUE(a->leads());
  EXPECT_FALSE(b->leads());
}

TEST(Membership, ADeadLeaderIsFollowedWhenItsLeaseHasRunOut) {
  MemberLab lab;
  LabMember& a = lab.Add("a");
  LabMember& b = lab.Add("b");
  lab.Advance(60 * kFakeSecond);
  EXPECT_EQ(LeaderSeenBy(b), "a");
  lab.Kill(a);
  lab.Advance(6 * kFakeSecond);  // the lease was kept a third of it ago at most
  EXPECT_EQ(LeaderSeenBy(b), "a");
  lab.Advance(4 * kFakeSecond);
  EXPECT_TRUE(b->leads());
  EXPECT_THAT(NamesSeenBy(b), ElementsAre("b"));
}

TEST(Membership, ALeaderThatLeavesIsFollowedAtOnce) {
  MemberLab lab;
  LabMember& a = lab.Add("a");
  LabMember& b = lab.Add("b");
  a->Leave(lab.now());
  EXPECT_FALSE(a->leads());
  lab.Settle();
  EXPECT_EQ(a->state(), MemberState::kLeft);
  EXPECT_FALSE(a.watch().has_value());
  EXPECT_TRUE(b->leads());
  EXPECT_THAT(NamesSeenBy(b), ElementsAre("b"));
}

TEST(Membership, LeavingWithoutAStoreTakesATtlAtMost) {
  MemberLab lab;
  LabMember& a = lab.Add("a");
  a.set_cut_off(true);
  a->Leave(lab.now());
  lab.Advance(9 * kFakeSecond);
  EXPECT_NE(a->state(), MemberState::kLeft);
  lab.Advance(1 * kFakeSecond);
  EXPECT_EQ(a->state(), MemberState::kLeft);
}

TEST(Membership, ANameThatAnotherHoldsIsAnErrorAndNoOverwrite) {
  MemberLab lab;
  LabMember& first = lab.Add("a", "first");
  const KvEntry entry = *lab.state().Find("/troupe/lab/nodes/a");
  LabMember& second = lab.AddUnsettled("a", "second", "9f", "b:7400");
  lab.Settle();
  EXPECT_EQ(second->state(), MemberState::kJoining);
  EXPECT_THAT(second->problem(), HasSubstr("waiting in case it is dead"));
  lab.Advance(22 * kFakeSecond);
  EXPECT_EQ(second->state(), MemberState::kNameTaken);
  EXPECT_EQ(second->problem(), "cluster 'lab' has a node 'a' already, at a:7400");
  EXPECT_EQ(*lab.state().Find("/troupe/lab/nodes/a"), entry);
  EXPECT_EQ(first->state(), MemberState::kMember);
  first->Leave(lab.now());
  lab.Settle();
  EXPECT_EQ(second->state(), MemberState::kMember);
}

TEST(Membership, ANodeThatStartsAgainGetsItsNameWhenItsOldLeaseHasRunOut) {
  MemberLab lab;
  LabMember& before = lab.Add("a", "first");
  lab.Kill(before);
  LabMember& after = lab.Add("a", "second");
  lab.Advance(9 * kFakeSecond);
  EXPECT_EQ(after->state(), MemberState::kJoining);
  lab.Advance(1 * kFakeSecond);
  EXPECT_EQ(after->state(), MemberState::kMember);
  EXPECT_TRUE(after->leads());
}

TEST(Membership, ANodeWaitsForItsOwnLastLifeHoweverLongTheStoreKeepsThat) {
  MemberLab lab;
  lab.Add("a", "first");
  LabMember& again = lab.Add("a", "second");
  lab.Advance(60 * kFakeSecond);
  EXPECT_EQ(again->state(), MemberState::kJoining);
  EXPECT_THAT(again->problem(), HasSubstr("waiting in case it is dead"));
}

TEST(Membership, ANodeOfAnotherModelStaysOutAndSaysWhoIsIn) {
  MemberLab lab;
  LabMember& a = lab.Add("a");
  LabMember& b = lab.Add("b", "", "other");
  EXPECT_EQ(b->state(), MemberState::kJoining);
  EXPECT_THAT(b->problem(), HasSubstr("waiting in case it is dead"));
  lab.Advance(22 * kFakeSecond);
  EXPECT_EQ(b->state(), MemberState::kOtherModel);
  EXPECT_EQ(b->problem(), "cluster 'lab' serves another model: node 'a' at a:7400 does");
  EXPECT_THAT(NamesSeenBy(a), ElementsAre("a"));
}

TEST(Membership, AfterADeadNodeOfAnotherModelTheClusterServesTheNewOne) {
  MemberLab lab;
  lab.Kill(lab.Add("a"));
  LabMember& b = lab.Add("b", "", "other");
  lab.Advance(11 * kFakeSecond);
  EXPECT_EQ(b->state(), MemberState::kMember);
  EXPECT_TRUE(b->leads());
}

TEST(Membership, WhoWasHereFirstIsNotKeptOutByTheKeyOfAnotherModel) {
  MemberLab lab;
  LabMember& a = lab.Add("a");
  const NodeRecord stranger = {.name = "b",
                               .address = "b:1",
                               .model = "other",
                               .start = "b",
                               .ttl = kFakeSecond,
                               .plan = {}};
  // As if both had registered before either saw the other.
  lab.state().Answer(
      1, KvTransaction{.puts = {{.key = "/troupe/lab/nodes/b", .value = ToValue(stranger)}}},
      lab.now());
  lab.Advance(60 * kFakeSecond);
  EXPECT_THAT(NamesSeenBy(a), ElementsAre("a", "b"));
  EXPECT_EQ(a->state(), MemberState::kMember);
}

TEST(Membership, APlanReachesAllAndTheNextHasALaterEpoch) {
  MemberLab lab;
  LabMember& a = lab.Add("a");
  LabMember& b = lab.Add("b");
  const PlanStamp first = Write(lab, a, 1).value();
  EXPECT_EQ(first.epoch, static_cast<std::uint64_t>(a->leader()->revision));
  EXPECT_EQ(EpochSeenBy(b), first.epoch);
  EXPECT_FALSE(a->plan_wanted());
  EXPECT_GT(Write(lab, a, 2).value().epoch, first.epoch);
  EXPECT_EQ(b->plan()->plan, Json(2));
  EXPECT_EQ(a->nodes()[1].plan, b->plan()->stamp) << "a node tells which plan it has";
}

TEST(Membership, OnlyTheLeaderWritesAndOnePlanAtATime) {
  MemberLab lab;
  LabMember& a = lab.Add("a");
  LabMember& b = lab.Add("b");
  EXPECT_EQ(b->WritePlan(Json(1), lab.now()).code(), Code::kFailedPrecondition);
  EXPECT_TRUE(a->WritePlan(Json(1), lab.now()).ok());
  EXPECT_EQ(a->WritePlan(Json(2), lab.now()).code(), Code::kUnavailable);
  lab.Settle();
  EXPECT_EQ(a->WritePlan(Json(std::string(1 << 20, 'x')), lab.now()).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(b->plan()->plan, Json(1));
}

TEST(Membership, APlanOfALeaderThatDoesNotKnowItIsOneNoMoreFails) {
  MemberLab lab;
  LabMember& a = lab.Add("a");
  LabMember& b = lab.Add("b");
  a.set_held(true);
  lab.Advance(15 * kFakeSecond);
  ASSERT_TRUE(b->leads());
  const PlanStamp plan = Write(lab, b, 1).value();
  ASSERT_TRUE(a->leads()) << "nobody has told it";
  ASSERT_TRUE(a->WritePlan(Json(2), lab.now()).ok());
  a.set_held(false);
  lab.Settle();
  const Result<PlanStamp> written = a->TakeNews().written.value();
  EXPECT_EQ(written.status().code(), Code::kFailedPrecondition);
  EXPECT_THAT(written.status().message(), HasSubstr("node 'b' leads now"));
  EXPECT_EQ(a->plan()->stamp, plan);
  EXPECT_EQ(a->state(), MemberState::kMember) << "with another lease";
}

TEST(Membership, APlanWhoseAnswerIsLostIsToldAsUnknownAndItsEpochIsNotUsedAgain) {
  MemberLab lab;
  LabMember& a = lab.Add("a");
  const PlanStamp first = Write(lab, a, 1).value();
  a.LoseNextAnswer();
  EXPECT_EQ(Write(lab, a, 2).status().code(), Code::kUnavailable);
  lab.Advance(1 * kFakeSecond);
  EXPECT_EQ(a->plan()->plan, Json(2)) << "it had been written";
  const PlanStamp last = Write(lab, a, 3).value();
  EXPECT_GT(last.epoch, first.epoch + 1);
}

TEST(Membership, WithoutTheStoreTheLastKnownStandsAndNobodyLeads) {
  MemberLab lab;
  LabMember& a = lab.Add("a");
  LabMember& b = lab.Add("b");
  ASSERT_TRUE(Write(lab, a, 1).ok());
  for (LabMember* member : {&a, &b}) member->set_cut_off(true);
  lab.Advance(300 * kFakeSecond);
  for (LabMember* member : {&a, &b}) {
    EXPECT_EQ((*member)->state(), MemberState::kWithoutStore);
    EXPECT_EQ((*member)->problem(), "cut off");
    EXPECT_THAT(NamesSeenBy(*member), ElementsAre("a", "b"));
    EXPECT_EQ((*member)->plan()->plan, Json(1));
    EXPECT_EQ(LeaderSeenBy(*member), "nobody");
  }
  for (LabMember* member : {&a, &b}) member->set_cut_off(false);
  lab.Advance(2 * kFakeSecond);
  for (LabMember* member : {&a, &b}) {
    EXPECT_EQ((*member)->state(), MemberState::kMember);
    EXPECT_THAT(NamesSeenBy(*member), ElementsAre("a", "b"));
    EXPECT_NE(LeaderSeenBy(*member), "nobody");
  }
  EXPECT_NE(a->leads(), b->leads());
}

TEST(Membership, APendingPlanFailsWhenTheStoreStaysAway) {
  MemberLab lab;
  LabMember& a = lab.Add("a");
  a.set_cut_off(true);
  lab.Advance(1 * kFakeSecond);
  (void)a->TakeNews();
  ASSERT_TRUE(a->WritePlan(Json(1), lab.now()).ok());
  lab.Advance(20 * kFakeSecond);
  EXPECT_FALSE(a->TakeNews().written.value().ok());
}

TEST(Membership, ALeaseThatTheStoreLostIsReplaced) {
  MemberLab lab;
  LabMember& a = lab.Add("a");
  const KvLease before = lab.state().Find("/troupe/lab/nodes/a")->lease;
  lab.state().Answer(99, RevokeLease{before}, lab.now());
  lab.Settle();
  lab.Advance(4 * kFakeSecond);  // seen when it is to be kept alive
  EXPECT_EQ(a->state(), MemberState::kMember);
  EXPECT_TRUE(a->leads());
  EXPECT_NE(lab.state().Find("/troupe/lab/nodes/a")->lease, before);
}

TEST(Membership, AfterACompactionThePrefixIsReadAgain) {
  MemberLab lab;
  LabMember& a = lab.Add("a");
  a.set_held(true);
  lab.Add("b");
  lab.state().Compact();
  a.set_held(false);
  lab.Settle();
  EXPECT_THAT(NamesSeenBy(a), ElementsAre("a", "b"));
  lab.Add("c");
  EXPECT_THAT(NamesSeenBy(a), ElementsAre("a", "b", "c"));
}

TEST(Membership, ARestoredStoreTakesNoEpochBack) {
  MemberLab lab;
  LabMember& a = lab.Add("a");
  LabMember& b = lab.Add("b");
  ASSERT_TRUE(Write(lab, a, 1).ok());
  const FakeKvState backup = lab.state();
  for (int plan = 2; plan < 20; ++plan) ASSERT_TRUE(Write(lab, a, plan).ok());
  const std::uint64_t before = EpochSeenBy(b);
  lab.state() = backup;
  lab.state().RenewLeases(lab.now());
  lab.Advance(10 * kFakeSecond);  // until the next read
  EXPECT_EQ(a->plan()->plan, Json(19));
  EXPECT_TRUE(a->leads());
  EXPECT_TRUE(a->plan_wanted());
  EXPECT_GT(Write(lab, a, 20).value().epoch, before);
  EXPECT_EQ(b->plan()->plan, Json(20));
  EXPECT_FALSE(a->plan_wanted());
  lab.Add("c");
  EXPECT_THAT(NamesSeenBy(a), ElementsAre("a", "b", "c")) << "the watch follows the restored store";
}

TEST(Membership, ALeaderThatKnowsNothingLearnsTheGreatestEpochFromTheOthers) {
  MemberLab lab;
  LabMember& a = lab.Add("a");
  LabMember& b = lab.Add("b");
  const FakeKvState backup = lab.state();
  for (int plan = 1; plan < 20; ++plan) ASSERT_TRUE(Write(lab, a, plan).ok());
  const std::uint64_t before = EpochSeenBy(b);
  lab.Kill(a);
  lab.state() = backup;
  lab.state().RenewLeases(lab.now());
  b.set_cut_off(true);
  LabMember& c = lab.Add("c");
  lab.Advance(25 * kFakeSecond);
  ASSERT_TRUE(c->leads());
  EXPECT_LT(Write(lab, c, 20).value().epoch, before) << "who could have told it?";
  b.set_cut_off(false);
  lab.Advance(1 * kFakeSecond);
  EXPECT_EQ(EpochSeenBy(b), before) << "an older epoch is not accepted";
  EXPECT_TRUE(c->plan_wanted());
  EXPECT_GT(Write(lab, c, 21).value().epoch, before);
  EXPECT_EQ(b->plan()->plan, Json(21));
}

TEST(Membership, ASilentWatchIsMadeUpForByReads) {
  MemberLab lab;
  LabMember& a = lab.Add("a");
  FakeKvState backup = lab.state();
  lab.Add("b");
  ASSERT_THAT(NamesSeenBy(a), ElementsAre("a", "b"));
  // A store of which a's watch waits for a revision that it has not yet reached.
  lab.state() = backup;
  lab.Add("c");
  EXPECT_THAT(NamesSeenBy(a), ElementsAre("a", "b"));
  lab.Advance(10 * kFakeSecond);
  EXPECT_THAT(NamesSeenBy(a), ElementsAre("a", "b", "c"));
}

TEST(Membership, ATickIsNeverDueForNothing) {
  MemberLab lab;
  LabMember& a = lab.Add("a");
  for (const bool cut_off : {false, true, false}) {
    a.set_cut_off(cut_off);
    for (int second = 0; second < 40; ++second) {
      lab.Advance(kFakeSecond);
      ASSERT_GT(a->next_tick(), lab.now());
    }
  }
}

}  // namespace
}  // namespace troupe
