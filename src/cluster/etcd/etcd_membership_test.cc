// Membership on a real etcd: what the simulation of cluster/members shows with a fake one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "cluster/etcd/etcd_server_for_test.h"
#include "cluster/etcd/running_member_for_test.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

constexpr Nanos kTtl = 3'000'000'000;

class EtcdMembershipTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (EtcdServer::IsInstalled()) server_ = new EtcdServer;
  }
  static void TearDownTestSuite() { delete std::exchange(server_, nullptr); }
  void SetUp() override {
    if (server_ == nullptr) GTEST_SKIP() << "no etcd: install etcd-server and etcd-client";
  }

  // In a cluster of this test alone.
  static std::unique_ptr<RunningMember> StartOn(const EtcdServer& server, const std::string& name,
                                                const std::string& start = "",
                                                const std::string& host = "") {
    EtcdOptions etcd = server.options();
    etcd.timeout = kTtl / 2;
    return std::make_unique<RunningMember>(
        etcd,
        MembershipOptions{.cluster = testing::UnitTest::GetInstance()->current_test_info()->name(),
                          .node = name,
                          .address = (host.empty() ? name : host) + ":7400",
                          .model = "9f",
                          .start = start.empty() ? name : start,
                          .new_cluster = true,
                          .ttl = kTtl,
                          .retry = kTtl / 10});
  }
  // Three nodes that see each other; "a" leads, unless this machine is very slow.
  static std::vector<std::unique_ptr<RunningMember>> StartThree(const EtcdServer& server) {
    std::vector<std::unique_ptr<RunningMember>> members;
    for (const char* name : {"a", "b", "c"}) {
      members.push_back(StartOn(server, name));
      EXPECT_TRUE(members.back()->WaitUntil([](Membership& member) {
        return member.state() == MemberState::kMember && member.leader();
      })) << members.back()->Get([](Membership& m) { return m.problem(); });
    }
    for (const auto& member : members) {
      EXPECT_TRUE(member->WaitUntil([](Membership& m) { return m.nodes().size() == 3; }));
    }
    return members;
  }
  static bool HasPlan(RunningMember& member, int plan) {
    return member.WaitUntil(
        [&](Membership& m) { return m.plan() && m.plan()->plan == Json(plan); });
  }
  static bool Settles(RunningMember& member, std::size_t nodes) {
    return member.WaitUntil([&](Membership& m) {
      return m.state() == MemberState::kMember && m.nodes().size() == nodes && m.leader();
    });
  }
  // What the plan of the one that leads becomes, once one of them does and can.
  static Result<PlanStamp> WriteByLeader(const std::vector<std::unique_ptr<RunningMember>>& members,
                                         int plan) {
    Status last = Error(Code::kNotFound, "none leads");
    for (int attempt = 0; attempt < 200; ++attempt) {
      for (const auto& member : members) {
        if (!member->Get([](Membership& m) { return m.leads(); })) continue;
        const Result<PlanStamp> written = member->Write(Json(plan));
        if (written.ok()) return written;
        last = written.status();
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return last;
  }
  static std::uint64_t EpochOf(RunningMember& member) {
    return member.Get([](Membership& m) { return m.plan() ? m.plan()->stamp.epoch : 0; });
  }

  static EtcdServer* server_;
};
EtcdServer* EtcdMembershipTest::server_ = nullptr;

TEST_F(EtcdMembershipTest, AnotherFollowsALeaderThatDies) {
  auto members = StartThree(*server_);
  ASSERT_TRUE(WriteByLeader(members, 1).ok());
  EXPECT_TRUE(HasPlan(*members[2], 1));
  const std::uint64_t before = EpochOf(*members[2]);
  members.erase(members.begin());
  for (const auto& member : members) {
    EXPECT_TRUE(member->WaitUntil([](Membership& m) {
      return m.nodes().size() == 2 && m.leader() && m.leader()->node != "a";
    }));
  }
  EXPECT_GT(WriteByLeader(members, 2).value().epoch, before);
  for (const auto& member : members) EXPECT_TRUE(HasPlan(*member, 2));
}

TEST_F(EtcdMembershipTest, ALeaderThatWasStoppedCannotWrite) {
  auto members = StartThree(*server_);
  members[0]->set_stopped(true);
  std::vector<std::unique_ptr<RunningMember>> others;
  others.push_back(std::move(members[1]));
  others.push_back(std::move(members[2]));
  for (const auto& member : others) {
    ASSERT_TRUE(member->WaitUntil([](Membership& m) {
      return m.nodes().size() == 2 && m.leader() && m.leader()->node != "a";
    }));
  }
  ASSERT_TRUE(WriteByLeader(others, 2).ok());
  // It has not been told, and asks before it is.
  ASSERT_TRUE(members[0]->Get([](Membership& m) {
    return m.leads() && m.WritePlan(Json(1), MonotonicClock().Now()).ok();
  }));
  members[0]->set_stopped(false);
  Status written = OkStatus();
  ASSERT_TRUE(members[0]->WaitUntil([&](Membership& m) {
    const MemberNews news = m.TakeNews();
    if (news.written) written = news.written->status();
    return news.written.has_value();
  }));
  EXPECT_EQ(written.code(), Code::kFailedPrecondition) << written.ToString();
  EXPECT_THAT(written.message(), HasSubstr("leads now"));
  EXPECT_TRUE(HasPlan(*members[0], 2));
  EXPECT_TRUE(Settles(*members[0], 3));
}

TEST_F(EtcdMembershipTest, ANameThatAnotherHoldsIsRefused) {
  const auto first = StartOn(*server_, "a", "first");
  ASSERT_TRUE(Settles(*first, 1));
  const auto second = StartOn(*server_, "a", "second", "b");
  EXPECT_TRUE(
      second->WaitUntil([](Membership& m) { return m.state() == MemberState::kNameTaken; }));
  EXPECT_THAT(second->Get([](Membership& m) { return m.problem(); }), HasSubstr("at a:7400"));
  first->Get([](Membership& m) { m.Leave(MonotonicClock().Now()); });
  EXPECT_TRUE(Settles(*second, 1));
  EXPECT_EQ(first->Get([](Membership& m) { return m.state(); }), MemberState::kLeft);
}

// As three units that are started for the first time on three machines.
TEST_F(EtcdMembershipTest, ANewClusterBesideAnotherBeginsOnlyIfItIsAsked) {
  EtcdServer server;
  const auto start = [&](const std::string& cluster, const std::string& name, bool new_cluster) {
    return std::make_unique<RunningMember>(server.options(),
                                           MembershipOptions{.cluster = cluster,
                                                             .node = name,
                                                             .address = name + ":7400",
                                                             .model = "9f",
                                                             .start = name,
                                                             .new_cluster = new_cluster,
                                                             .ttl = kTtl,
                                                             .retry = kTtl / 10});
  };
  const auto first = start("lab", "a", false);
  ASSERT_TRUE(Settles(*first, 1)) << "etcd has no cluster at all";
  const auto mistyped = start("lap", "b", false);
  ASSERT_TRUE(
      mistyped->WaitUntil([](Membership& m) { return m.state() == MemberState::kUnknown; }));
  EXPECT_THAT(mistyped->Get([](Membership& m) { return m.problem(); }),
              HasSubstr("did you mean 'lab'?"));
  std::vector<std::unique_ptr<RunningMember>> units;
  for (const char* name : {"x", "y", "z"}) units.push_back(start("prod", name, true));
  for (const auto& unit : units) EXPECT_TRUE(Settles(*unit, 3));
  const auto later = start("prod", "w", false);
  EXPECT_TRUE(Settles(*later, 4));
  EXPECT_TRUE(Settles(*first, 1));
}

TEST_F(EtcdMembershipTest, ServingGoesOnWhileEtcdIsStopped) {
  const auto members = StartThree(*server_);
  ASSERT_TRUE(WriteByLeader(members, 1).ok());
  for (const auto& member : members) ASSERT_TRUE(HasPlan(*member, 1));
  server_->Stop();
  for (const auto& member : members) {
    EXPECT_TRUE(
        member->WaitUntil([](Membership& m) { return m.state() == MemberState::kWithoutStore; }));
    EXPECT_TRUE(member->Get(
        [](Membership& m) { return m.nodes().size() == 3 && m.plan() && !m.leader(); }));
  }
  server_->Continue();
  for (const auto& member : members) EXPECT_TRUE(Settles(*member, 3));
  EXPECT_TRUE(WriteByLeader(members, 2).ok());
  for (const auto& member : members) EXPECT_TRUE(HasPlan(*member, 2));
}

TEST_F(EtcdMembershipTest, AnEtcdThatIsKilledAndStartedAgainIsFoundAgain) {
  EtcdServer server;
  const auto members = StartThree(server);
  ASSERT_TRUE(WriteByLeader(members, 1).ok());
  server.Kill();
  for (const auto& member : members) {
    EXPECT_TRUE(
        member->WaitUntil([](Membership& m) { return m.state() == MemberState::kWithoutStore; }));
  }
  server.Start();
  for (const auto& member : members) {
    EXPECT_TRUE(Settles(*member, 3));
    EXPECT_TRUE(HasPlan(*member, 1));
  }
  EXPECT_TRUE(WriteByLeader(members, 2).ok());
  for (const auto& member : members) EXPECT_TRUE(HasPlan(*member, 2));
}

TEST_F(EtcdMembershipTest, AnEtcdThatIsRestoredFromASnapshotTakesNoEpochBack) {
  EtcdServer server;
  const auto members = StartThree(server);
  ASSERT_TRUE(WriteByLeader(members, 1).ok());
  server.Control({"snapshot", "save", server.PathOf("snapshot")});
  for (int plan = 2; plan < 8; ++plan) ASSERT_TRUE(WriteByLeader(members, plan).ok());
  for (const auto& member : members) ASSERT_TRUE(HasPlan(*member, 7));
  const std::uint64_t before = EpochOf(*members[2]);
  server.RestoreFrom(server.PathOf("snapshot"), server.PathOf("restored"));
  server.Kill();
  server.Start();
  for (const auto& member : members) EXPECT_TRUE(Settles(*member, 3));
  EXPECT_GT(WriteByLeader(members, 8).value().epoch, before)
      << "the store's plan is older than what all have accepted";
  for (const auto& member : members) EXPECT_TRUE(HasPlan(*member, 8));
  // The watches follow the restored store.
  const auto fourth = StartOn(server, "d");
  for (const auto& member : members) EXPECT_TRUE(Settles(*member, 4));
}

TEST_F(EtcdMembershipTest, AfterACompactionAllIsSeenAsBefore) {
  const auto members = StartThree(*server_);
  members[2]->set_stopped(true);
  for (int plan = 1; plan < 8; ++plan) ASSERT_TRUE(WriteByLeader(members, plan).ok());
  const KvRevision now = AskingClient(server_->options()).Ask(ReadPrefix{.prefix = "/"}).revision;
  server_->Control({"compact", std::to_string(now)});
  const auto fourth = StartOn(*server_, "d");
  members[2]->set_stopped(false);
  EXPECT_TRUE(HasPlan(*members[2], 7));
  EXPECT_TRUE(members[2]->WaitUntil([](Membership& m) { return m.nodes().size() == 4; }));
}

TEST_F(EtcdMembershipTest, MembersFindTheirWayAroundAnEndpointThatIsGone) {
  EtcdOptions etcd = server_->options();
  etcd.endpoints.insert(etcd.endpoints.begin(), "127.0.0.1:" + std::to_string(FreePortForTest()));
  RunningMember member(etcd, {.cluster = "MembersFindTheirWay",
                              .node = "a",
                              .address = "a:7400",
                              .model = "9f",
                              .start = "a",
                              .new_cluster = true,
                              .ttl = kTtl,
                              .retry = kTtl / 10});
  EXPECT_TRUE(Settles(member, 1));
}

}  // namespace
}  // namespace troupe
