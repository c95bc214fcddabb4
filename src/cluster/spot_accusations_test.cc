// Nodes of a simulated cluster that ask each other and compute some answers again: one that lies is
// found out by all, one that accuses others has nobody thrown out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "cluster/simulated_nodes_for_test.h"
#include "cluster/spot_sample.h"
#include "cluster/wire/accusation.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

constexpr Nanos kAccusedSecond = SimulatedNodes::kSecond;

class Accusations : public testing::Test {
 protected:
  void Open(std::size_t count, bool has_store = false) {
    nodes_.emplace(SimulatedNodes::Shape{
        .nodes = count, .most_held = 8, .seed = TestSeed(), .has_store = has_store});
    checked_.assign(count, 0);
    nodes_->on_suspect = [this](std::size_t i, std::uint64_t start) { samples_[i].Suspect(start); };
    nodes_->Run(20 * kAccusedSecond);
  }
  // `share`: of node 0 alone; the others check nothing by themselves.
  void Verify(double share) {
    for (std::size_t i = 0; i < nodes_->size(); ++i) {
      samples_.emplace_back(i == 0 ? share : 0, 1 << 20, TestSeed() + i);
    }
  }
  // Each node asks each of its peers for a row a second, and checks what it draws.
  void Serve(int seconds, std::optional<std::size_t> liar) {
    for (int second = 0; second < seconds; ++second) {
      for (std::size_t i = 0; i < nodes_->size(); ++i) {
        for (const std::string& name : nodes_->core(i)->Peers()) {
          const std::size_t peer = *nodes_->IndexOf(name);
          if (samples_[i].Draw(nodes_->start(peer), 1, 1).empty()) continue;
          ++checked_[i];
          if (peer == liar && i != liar) {
            nodes_->core(i)->OnWrongAnswer(nodes_->start(peer), {1, 2}, nodes_->now());
          }
        }
      }
      nodes_->Run(kAccusedSecond);
      nodes_->Mend();
    }
  }
  std::vector<std::string> Planned(std::size_t i) {
    std::vector<std::string> names;
    for (const auto& node : nodes_->core(i)->plan()->nodes) names.push_back(node.name);
    return names;
  }

  // Nodes 0 and 1 find out the last one.
  void ThrowOutTheLast() {
    const std::uint64_t start = nodes_->start(nodes_->size() - 1);
    for (const std::size_t i : {0, 1}) nodes_->core(i)->OnWrongAnswer(start, {1, 2}, nodes_->now());
    nodes_->Run(kAccusedSecond);
  }
  // As node `as`, but with a start that it chooses; says hello to node `to`.
  void SayHello(std::size_t as, std::uint64_t start, std::size_t to) {
    PeerHello hello = nodes_->HelloOf(as);
    hello.start_id = start;
    NodeCore& core = *nodes_->core(to);
    core.OnLinkOpened(++stranger_, {.address = {}, .names = {}}, nodes_->now());
    core.OnFrame(stranger_, Encode(hello), nodes_->now());
    EXPECT_FALSE(core.IsPeer(stranger_));
  }
  void CutAll() {
    for (int i = 0; i < 100; ++i) nodes_->CutAny();
    nodes_->Run(kAccusedSecond);
    nodes_->Mend();
    nodes_->Run(5 * kAccusedSecond);
  }

  LinkId stranger_ = 1'000'000;
  std::optional<SimulatedNodes> nodes_;
  std::vector<SpotSample> samples_;
  std::vector<std::uint64_t> checked_;
};

// Node 1 computes nothing again until it hears of it.
TEST_F(Accusations, ALiarAmongThreeIsThrownOutByAllAndLeftOutOfThePlan) {
  for (const bool has_store : {false, true}) {
    SCOPED_TRACE(has_store);
    Open(3, has_store);
    samples_.clear();
    Verify(0.2);
    Serve(120, /*liar=*/2);
    EXPECT_THAT(nodes_->core(0)->Peers(), ElementsAre("n1"));
    EXPECT_THAT(nodes_->core(1)->Peers(), ElementsAre("n0"));
    EXPECT_GT(checked_[1], 0u);
    if (!nodes_->core(2)->leads()) {
      EXPECT_THAT(Planned(0), UnorderedElementsAre("n0", "n1"));
      EXPECT_THAT(Planned(1), UnorderedElementsAre("n0", "n1"));
    }
  }
}

TEST_F(Accusations, AnAccuserThatLiesHasNobodyThrownOut) {
  Open(4);
  Verify(0);
  nodes_->core(3)->OnWrongAnswer(nodes_->start(1), {1, 2}, nodes_->now());
  for (int round = 0; round < 3; ++round) {
    Serve(70, std::nullopt);
    nodes_->CutAny();  // it tells it again by each new link
  }
  Serve(30, std::nullopt);
  EXPECT_THAT(nodes_->core(0)->Peers(), ElementsAre("n1", "n2", "n3"));
  EXPECT_THAT(nodes_->core(2)->Peers(), ElementsAre("n0", "n1", "n3"));
  EXPECT_THAT(Planned(0), UnorderedElementsAre("n0", "n1", "n2", "n3"));
  EXPECT_EQ(checked_[0], SpotSample::kAnswersOfASuspect) << "it looked for itself, once";
  EXPECT_EQ(checked_[2], SpotSample::kAnswersOfASuspect);
}

TEST_F(Accusations, NorHasItAnybodyCheckedMoreOftenByStartingAnew) {
  Open(4);
  Verify(0);
  for (int life = 0; life < 3; ++life) {
    nodes_->core(3)->OnWrongAnswer(nodes_->start(1), {1, 2}, nodes_->now());
    Serve(70, std::nullopt);
    nodes_->Kill(3);
    nodes_->Start(3);
    Serve(5, std::nullopt);
  }
  EXPECT_THAT(nodes_->core(0)->Peers(), ElementsAre("n1", "n2", "n3"));
  EXPECT_EQ(checked_[0], SpotSample::kAnswersOfASuspect);
  EXPECT_EQ(checked_[2], SpotSample::kAnswersOfASuspect);
}

// The one that leads asks that node for nothing, and has only the word of the others.
TEST_F(Accusations, WhomMostOfTheOthersAccuseIsLeftOutOfThePlanThoughItStaysAPeer) {
  Open(4);
  Verify(0);
  nodes_->core(1)->OnWrongAnswer(nodes_->start(3), {1, 2}, nodes_->now());
  nodes_->Run(30 * kAccusedSecond);
  EXPECT_THAT(Planned(0), UnorderedElementsAre("n0", "n1", "n2", "n3"));
  nodes_->core(2)->OnWrongAnswer(nodes_->start(3), {1, 2}, nodes_->now());
  nodes_->Run(30 * kAccusedSecond);
  EXPECT_THAT(Planned(0), UnorderedElementsAre("n0", "n1", "n2"));
  EXPECT_THAT(nodes_->core(0)->Peers(), ElementsAre("n1", "n2", "n3"));
}

TEST_F(Accusations, WhoComesLaterIsTold) {
  Open(3);
  Verify(0);
  nodes_->Kill(1);
  nodes_->Run(kAccusedSecond);
  nodes_->core(0)->OnWrongAnswer(nodes_->start(2), {1, 2}, nodes_->now());
  nodes_->Run(kAccusedSecond);
  nodes_->Start(1);
  nodes_->Run(5 * kAccusedSecond);
  Serve(3, /*liar=*/2);
  EXPECT_THAT(nodes_->core(1)->Peers(), ElementsAre("n0"));
}

// The one that leads has thrown nobody out, and has only the word of the others.
TEST_F(Accusations, WhomTheOthersAndTheOneThatLeadsReadmitIsInPlansAgain) {
  Open(4);
  Verify(0);
  for (const std::size_t i : {1, 2}) {
    nodes_->core(i)->OnWrongAnswer(nodes_->start(3), {1, 2}, nodes_->now());
  }
  nodes_->Run(30 * kAccusedSecond);
  EXPECT_THAT(Planned(0), UnorderedElementsAre("n0", "n1", "n2"));
  for (const std::size_t i : {1, 2, 0}) {
    EXPECT_EQ(nodes_->core(i)->Readmit(nodes_->now()), 1u) << i;
    EXPECT_EQ(nodes_->core(i)->Readmit(nodes_->now()), 0u) << i;
  }
  nodes_->Mend();
  nodes_->Run(60 * kAccusedSecond);
  EXPECT_THAT(Planned(0), UnorderedElementsAre("n0", "n1", "n2", "n3"));
}

TEST_F(Accusations, TheWordOfOneThatDoesNotSayItAgainByItsNextLinkCountsNoMore) {
  Open(4);
  Verify(0);
  for (const std::size_t i : {1, 2}) {
    nodes_->core(i)->OnWrongAnswer(nodes_->start(3), {1, 2}, nodes_->now());
  }
  nodes_->Run(30 * kAccusedSecond);
  CutAll();
  nodes_->Run(60 * kAccusedSecond);
  EXPECT_THAT(Planned(0), UnorderedElementsAre("n0", "n1", "n2")) << "they do say it again";
  for (const std::size_t i : {1, 2}) (void)nodes_->core(i)->Readmit(nodes_->now());
  CutAll();
  nodes_->Run(60 * kAccusedSecond);
  EXPECT_THAT(Planned(0), UnorderedElementsAre("n0", "n1", "n2", "n3"));
}

TEST_F(Accusations, OneThatWasThrownOutTakesNobodyWithItByAnothersStart) {
  Open(4);
  Verify(0);
  ThrowOutTheLast();
  for (const std::size_t to : {0, 1}) SayHello(3, nodes_->start(2), to);
  nodes_->Run(30 * kAccusedSecond);
  CutAll();
  nodes_->Run(60 * kAccusedSecond);
  EXPECT_THAT(nodes_->core(0)->Peers(), ElementsAre("n1", "n2"));
  EXPECT_THAT(nodes_->core(1)->Peers(), ElementsAre("n0", "n2"));
  EXPECT_THAT(Planned(0), UnorderedElementsAre("n0", "n1", "n2"));
}

TEST_F(Accusations, NorByTheStartOfOneThatIsStillToCome) {
  Open(4);
  Verify(0);
  nodes_->Kill(2);
  ThrowOutTheLast();
  const std::uint64_t next = nodes_->HelloOf(2).start_id + 1;
  for (const std::size_t to : {0, 1}) SayHello(3, next, to);
  nodes_->Start(2);
  ASSERT_EQ(nodes_->start(2), next);
  nodes_->Run(5 * kAccusedSecond);
  CutAll();
  nodes_->Run(90 * kAccusedSecond);
  EXPECT_THAT(nodes_->core(0)->Peers(), ElementsAre("n1", "n2"));
  EXPECT_THAT(nodes_->core(1)->Peers(), ElementsAre("n0", "n2"));
  EXPECT_THAT(Planned(0), UnorderedElementsAre("n0", "n1", "n2"));
}

TEST_F(Accusations, OthersAreToldOfEachLifeButNotAtEachHello) {
  Open(3);
  Verify(0);
  ThrowOutTheLast();
  nodes_->Run(5 * kAccusedSecond);
  const auto told = [&](std::uint64_t start) {
    SayHello(2, start, 0);
    const std::vector<NodeAction> actions = nodes_->core(0)->TakeActions();
    return std::ranges::count_if(actions, [start](const NodeAction& action) {
      const auto* send = std::get_if<node_action::Send>(&action);
      return send != nullptr &&
             send->frame == Encode(PeerAccusation{.accused = start, .layer = 1, .expert = 2});
    });
  };
  EXPECT_EQ(told(1001), 1) << "node 1";
  for (int i = 0; i < 5; ++i) EXPECT_EQ(told(1001), 0);
  EXPECT_EQ(told(1002), 0);
  nodes_->Run(2 * kAccusedSecond);
  EXPECT_EQ(told(1002), 1);
}

}  // namespace
}  // namespace troupe
