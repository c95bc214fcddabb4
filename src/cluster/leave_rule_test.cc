#include "cluster/leave_rule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "base/rng.h"
#include "cluster/plan_follower.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

constexpr ExpertGrid kSwapGrid{.layers = 2, .experts = 6};

class LeavingRule : public testing::Test {
 protected:
  // Of {0, 1}, by "b", under plan 7.
  bool MayGo() const { return MayLeave({0, 1}, "b", 7, others_); }

  const ClusterPlan::Node wants_{.name = "", .held = {{1}, {}}};
  ExpertBits held_{kSwapGrid};
  std::vector<OtherNode> others_ = {{.name = "c", .here = true, .awaited = true, .epoch = 7}};
  LeavingRule() {
    held_.Add({0, 1});
    others_[0].held = &held_;
  }
};

TEST_F(LeavingRule, WhatNobodyIsToHoldMayGo) { EXPECT_TRUE(MayGo()); }

TEST_F(LeavingRule, WhatOneThatIsToHoldItHoldsByTheSamePlanMayGo) {
  others_[0].planned = &wants_;
  EXPECT_TRUE(MayGo());
  others_[0].epoch = 6;
  EXPECT_FALSE(MayGo()) << "by that plan it may let it go as well";
  others_[0].epoch = 7;
  others_[0].held = nullptr;
  EXPECT_FALSE(MayGo()) << "it does not hold it yet";
}

TEST_F(LeavingRule, OfTwoThatAreToLetItGoTheFirstWaits) {
  others_.push_back({.name = "d", .here = true, .awaited = true, .epoch = 7, .planned = &wants_});
  EXPECT_FALSE(MayGo()) << "c relies on b";
  others_[0].name = "a";
  EXPECT_TRUE(MayGo());
}

TEST_F(LeavingRule, WhoHasBeenAwayForLongIsNotWaitedFor) {
  others_[0] = {.name = "c", .awaited = true, .planned = &wants_};
  EXPECT_FALSE(MayGo());
  others_[0].awaited = false;
  EXPECT_TRUE(MayGo());
}

TEST_F(LeavingRule, WhatIsToBeHeldHereMayRestWhereOthersWithNamesBeforeAreToHoldItAndDo) {
  const auto may_rest = [&](std::uint32_t copies) {
    return MayRest({0, 1}, "b", 7, copies, others_);
  };
  others_[0].planned = &wants_;
  EXPECT_FALSE(may_rest(1)) << "c may count on b";
  others_[0].name = "a";
  EXPECT_TRUE(may_rest(1));
  EXPECT_FALSE(may_rest(2)) << "there is to be another copy";
  others_[0].epoch = 6;
  EXPECT_FALSE(may_rest(1)) << "by that plan it may let it go";
  others_[0].epoch = 7;
  others_[0].here = false;
  EXPECT_FALSE(may_rest(1)) << "it is lost";
  others_[0].here = true;
  others_[0].planned = nullptr;
  EXPECT_FALSE(may_rest(1)) << "it is to let it go itself";
}

// Nodes that follow plans, each of them at its own time, and hear of each other late.
class Swaps {
 public:
  // Each plan, and what is held at first, has all experts, and no slot is free.
  Swaps(std::size_t nodes, Rng& rng, int most_changes = 0)
      : rng_(rng), nodes_(nodes), most_changes_(most_changes) {
    const auto most = static_cast<std::uint32_t>((kSwapGrid.Count() + nodes - 1) / nodes);
    const ClusterPlan first = AnyPlan(0, most);
    for (std::size_t i = 0; i < nodes; ++i) {
      Node& node = nodes_[i];
      node.known.assign(nodes, {.epoch = 0, .sequence = 0, .held = ExpertBits(kSwapGrid)});
      node.inbox.resize(nodes);
      node.held.resize(kSwapGrid.Count());
      for (std::size_t e = 0; e < node.held.size(); ++e) {
        node.held[e] = first.nodes[i].Wants(IdOf(e)) ? 1 : 0;
      }
      node.follower = std::make_unique<PlanFollower>(
          PlanFollower::Self{
              .node = NameOf(i), .grid = kSwapGrid, .most_held = most, .held = node.held},
          [this, i](const ClusterPlan& plan) { return OthersOf(i, plan); });
    }
    for (std::uint64_t epoch = 1; epoch <= 1 + rng.Below(3); ++epoch) {
      plans_.push_back(AnyPlan(epoch, most));
    }
  }

  // Something that can happen; false: nothing is left.
  bool Step() {
    std::vector<std::function<void()>> can;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      Node& node = nodes_[i];
      if (node.plans < plans_.size()) {
        can.push_back([&] { node.follower->Adopt(plans_[node.plans++]); });
      }
      if (node.step) can.push_back([&] { Carry(node); });
      if (node.changes < most_changes_) can.push_back([&] { Change(node); });
      for (std::size_t from = 0; from < nodes_.size(); ++from) {
        if (node.inbox[from].empty()) continue;
        can.push_back([&node, from] {
          node.known[from] = node.inbox[from].front();
          node.inbox[from].pop_front();
        });
      }
    }
    if (can.empty()) return false;
    can[rng_.Below(can.size())]();
    for (std::size_t i = 0; i < nodes_.size(); ++i) GoOn(i);
    return true;
  }

  // That no node holds, though all plans have it.
  std::size_t lost() const {
    std::size_t lost = 0;
    for (std::size_t e = 0; e < kSwapGrid.Count(); ++e) {
      lost += std::ranges::none_of(nodes_, [e](const Node& node) {
        return node.follower->held()[e] != 0;  // what goes is not among it
      });
    }
    return lost;
  }
  bool WithinMemory() const {
    const auto most = (kSwapGrid.Count() + nodes_.size() - 1) / nodes_.size();
    return std::ranges::all_of(nodes_, [&](const Node& node) {
      return static_cast<std::size_t>(std::ranges::count(node.held, 1)) <=
             most + HoldingFacts::kSwapSlots;
    });
  }
  std::uint64_t rested() const {
    std::uint64_t all = 0;
    for (const Node& node : nodes_) all += node.follower->rested();
    return all;
  }
  bool Settled() const {
    return std::ranges::all_of(nodes_, [](const Node& node) { return node.follower->settled(); });
  }

 private:
  struct Node {
    std::unique_ptr<PlanFollower> follower;
    std::vector<std::uint8_t> held;
    std::optional<HoldingStep> step;
    std::size_t plans = 0;  // that it has heard of
    int changes = 0;        // of whether sharing pays
    std::uint64_t told = 0;
    std::vector<PeerHoldings> known;
    std::vector<std::deque<PeerHoldings>> inbox;
  };

  static ExpertId IdOf(std::size_t index) {
    return {static_cast<std::uint32_t>(index / kSwapGrid.experts),
            static_cast<std::uint32_t>(index % kSwapGrid.experts)};
  }
  static std::string NameOf(std::size_t i) { return std::string(1, static_cast<char>('a' + i)); }

  ClusterPlan AnyPlan(std::uint64_t epoch, std::size_t most) {
    std::vector<std::size_t> all(kSwapGrid.Count());
    std::iota(all.begin(), all.end(), 0u);
    for (std::size_t e = all.size(); e > 1; --e) std::swap(all[e - 1], all[rng_.Below(e)]);
    ClusterPlan plan{.epoch = epoch, .nodes = {}};
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      ClusterPlan::Node node{.name = NameOf(i), .held = {}};
      node.held.resize(kSwapGrid.layers);
      for (std::size_t e = 0; e < all.size(); ++e) {
        if (e / most == i) node.held[IdOf(all[e]).layer].push_back(IdOf(all[e]).expert);
      }
      for (auto& layer : node.held) std::ranges::sort(layer);
      // What is left of the memory is for second copies.
      while (node.count() < most) {
        const ExpertId any = IdOf(rng_.Below(all.size()));
        if (!node.Wants(any)) node.held[any.layer].push_back(any.expert);
        std::ranges::sort(node.held[any.layer]);
      }
      for (const std::size_t e : all) (rng_.Below(2) == 0 ? node.come : node.go).push_back(IdOf(e));
      plan.nodes.push_back(std::move(node));
    }
    return plan;
  }

  std::vector<OtherNode> OthersOf(std::size_t i, const ClusterPlan& plan) const {
    std::vector<OtherNode> others;
    for (std::size_t other = 0; other < nodes_.size(); ++other) {
      if (other == i) continue;
      const PeerHoldings& known = nodes_[i].known[other];
      others.push_back({.name = plan.nodes[other].name,
                        .here = true,
                        .awaited = true,
                        .epoch = known.epoch,
                        .held = &known.held,
                        .planned = &plan.nodes[other]});
    }
    return others;
  }

  static void Carry(Node& node) {
    const HoldingStep step = *std::exchange(node.step, std::nullopt);
    if (const auto* release = std::get_if<ReleaseStep>(&step)) {
      node.held[kSwapGrid.Index(release->id)] = 0;
    } else {
      const auto& hold = std::get<HoldStep>(step);
      for (const std::uint32_t e : hold.experts) node.held[kSwapGrid.Index({hold.layer, e})] = 1;
    }
    node.follower->OnHeld(node.held, true);
  }
  void GoOn(std::size_t i) {
    Node& node = nodes_[i];
    if (!node.step) node.step = node.follower->TakeStep();
    if (std::exchange(node.told, node.follower->sequence()) == node.follower->sequence()) return;
    for (std::size_t to = 0; to < nodes_.size(); ++to) {
      if (to != i) nodes_[to].inbox[i].push_back(node.follower->Holdings());
    }
  }

  // Sharing is given up, or taken up again.
  void Change(Node& node) {
    std::vector<double> use;
    if (++node.changes % 2 == 1) {
      use.resize(kSwapGrid.Count());
      for (double& one : use) one = static_cast<double>(rng_.Below(10));
    }
    node.follower->Rest(std::move(use));
  }

  Rng& rng_;
  std::vector<Node> nodes_;
  const int most_changes_;
  std::vector<ClusterPlan> plans_;
};

// Full memories, any plans, one after the other, each node in its own time.
TEST(LeaveRule, NoExpertLeavesAllMemoriesWhileFullNodesSwapAndAllComeToTheEnd) {
  const std::uint64_t first = TestSeed();
  for (std::uint64_t seed = first; seed < first + TestCases(3000); ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    Swaps swaps(2 + seed % 4, rng);
    int steps = 0;
    while (swaps.Step()) {
      ASSERT_EQ(swaps.lost(), 0u);
      ASSERT_TRUE(swaps.WithinMemory());
      ASSERT_LT(++steps, 20'000);
    }
    ASSERT_TRUE(swaps.Settled()) << "nodes wait for each other";
  }
}

// The same where nodes give up sharing and take it up again, as often as they like.
TEST(LeaveRule, NoExpertLeavesAllMemoriesWhileSomeRest) {
  const std::uint64_t first = TestSeed();
  std::uint64_t rested = 0;
  for (std::uint64_t seed = first; seed < first + TestCases(3000); ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    Swaps swaps(2 + seed % 4, rng, /*most_changes=*/1 + static_cast<int>(rng.Below(4)));
    int steps = 0;
    while (swaps.Step()) {
      ASSERT_EQ(swaps.lost(), 0u);
      ASSERT_TRUE(swaps.WithinMemory());
      ASSERT_LT(++steps, 20'000);
    }
    ASSERT_TRUE(swaps.Settled()) << "nodes wait for each other";
    rested += swaps.rested();
  }
  EXPECT_GT(rested, 0u);
}

}  // namespace
}  // namespace troupe
