// Three full nodes that go from one plan to the next, under all orders of what can happen: a node
// takes up a plan, hears what another one holds, ends a step. In no state is an expert in no
// memory, and from each all come to the end.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/sanitized.h"
#include "cluster/plan_follower.h"

namespace troupe {
namespace {

constexpr ExpertGrid kTripleGrid{.layers = 1, .experts = 3};
constexpr std::size_t kTriple = 3;

using TripleHolds = std::vector<std::vector<std::uint32_t>>;  // by node

ClusterPlan TriplePlan(std::uint64_t epoch, const TripleHolds& holds) {
  ClusterPlan plan{.epoch = epoch, .nodes = {}};
  for (std::size_t i = 0; i < kTriple; ++i) {
    plan.nodes.push_back({.name = std::string(1, static_cast<char>('a' + i)), .held = {holds[i]}});
  }
  return plan;
}

// A value: what may happen next is tried on copies of it.
class Triple {
 public:
  explicit Triple(const std::vector<TripleHolds>& plans) {
    for (const TripleHolds& holds : plans) {
      plans_.push_back(TriplePlan(plans_.size() + 1, holds));
      for (const auto& one : holds) most_ = std::max(most_, one.size());
    }
    for (std::size_t i = 0; i < kTriple; ++i) {
      Node& node = nodes_.emplace_back();
      node.held.assign(kTripleGrid.Count(), 0);
      for (const std::uint32_t expert : plans[0][i]) node.held[expert] = 1;
      node.known.assign(kTriple, {.held = ExpertBits(kTripleGrid)});
      node.inbox.resize(kTriple);
      followers_.emplace_back(PlanFollower::Self{.node = plans_[0].nodes[i].name,
                                                 .grid = kTripleGrid,
                                                 .most_held = static_cast<std::uint32_t>(most_),
                                                 .held = node.held},
                              [i](const ClusterPlan& plan) { return asked_->OthersOf(i, plan); });
    }
    asked_ = this;
    // They follow the first plan, and know that of each other.
    for (std::size_t i = 0; i < kTriple; ++i) {
      followers_[i].Adopt(plans_[0]);
      nodes_[i].plans = 1;
      nodes_[i].told = followers_[i].sequence();
    }
    for (Node& node : nodes_) {
      for (std::size_t from = 0; from < kTriple; ++from) {
        node.known[from] = followers_[from].Holdings();
      }
    }
  }

  // How many things may happen now; Do does one of them.
  std::size_t Count() const { return Possible().size(); }
  void Do(std::size_t which) {
    asked_ = this;
    const auto [what, i, from] = Possible()[which];
    Node& node = nodes_[i];
    switch (what) {
      case What::kAdopt:
        followers_[i].Adopt(plans_[node.plans++]);
        break;
      case What::kHear:
        node.known[from] = node.inbox[from].front();
        node.inbox[from].pop_front();
        break;
      case What::kCarry:
        Carry(i);
        break;
    }
    GoOn(i);
  }

  std::string Problem() const {
    for (std::uint32_t expert = 0; expert < kTripleGrid.experts; ++expert) {
      if (std::ranges::none_of(plans_[0].nodes, [&](const ClusterPlan::Node& one) {
            return one.Wants({0, expert});
          })) {
        continue;
      }
      const bool held = std::ranges::any_of(
          followers_, [&](const PlanFollower& one) { return one.held()[expert] != 0; });
      if (!held) return fmt::format("expert {} is in no memory", expert);
    }
    for (const Node& node : nodes_) {
      const auto held = static_cast<std::size_t>(std::ranges::count(node.held, 1));
      if (held > most_ + HoldingFacts::kSwapSlots) return "more is held than may be";
    }
    asked_ = this;
    if (Count() > 0) return "";
    for (const PlanFollower& one : followers_) {
      if (!one.settled()) return "nothing can happen, and not all have come to the end";
    }
    return "";
  }

  // What makes two states the same.
  std::string Key() const {
    std::string key;
    const auto add = [&key](const PeerHoldings& holdings) {
      key += static_cast<char>('0' + holdings.epoch);
      for (std::uint32_t e = 0; e < kTripleGrid.experts; ++e) {
        key += holdings.held.Has({0, e}) ? '1' : '0';
      }
    };
    for (std::size_t i = 0; i < kTriple; ++i) {
      const Node& node = nodes_[i];
      key += static_cast<char>('0' + node.plans);
      key.append(node.held.begin(), node.held.end());
      key.append(followers_[i].held().begin(), followers_[i].held().end());
      key += node.step ? (std::holds_alternative<ReleaseStep>(*node.step) ? 'r' : 'h') : '-';
      if (node.step && std::holds_alternative<HoldStep>(*node.step)) {
        for (const std::uint32_t e : std::get<HoldStep>(*node.step).experts) {
          key += static_cast<char>('0' + e);
        }
      }
      for (std::size_t from = 0; from < kTriple; ++from) {
        if (from == i) continue;
        add(node.known[from]);
        key += '<';
        for (const PeerHoldings& holdings : node.inbox[from]) add(holdings);
      }
      key += '|';
    }
    return key;
  }

 private:
  enum class What { kAdopt, kHear, kCarry };
  struct Happening {
    What what = What::kAdopt;
    std::size_t node = 0, from = 0;
  };
  struct Node {
    std::vector<std::uint8_t> held;
    std::optional<HoldingStep> step;
    std::size_t plans = 0;
    std::uint64_t told = 0;
    std::vector<PeerHoldings> known;
    std::vector<std::deque<PeerHoldings>> inbox;
  };

  std::vector<Happening> Possible() const {
    std::vector<Happening> all;
    for (std::size_t i = 0; i < kTriple; ++i) {
      if (nodes_[i].plans < plans_.size()) all.push_back({What::kAdopt, i, 0});
      if (nodes_[i].step) all.push_back({What::kCarry, i, 0});
      for (std::size_t from = 0; from < kTriple; ++from) {
        if (!nodes_[i].inbox[from].empty()) all.push_back({What::kHear, i, from});
      }
    }
    return all;
  }

  std::vector<OtherNode> OthersOf(std::size_t i, const ClusterPlan& plan) const {
    std::vector<OtherNode> others;
    for (std::size_t other = 0; other < kTriple; ++other) {
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

  void Carry(std::size_t i) {
    Node& node = nodes_[i];
    const HoldingStep step = *std::exchange(node.step, std::nullopt);
    if (const auto* release = std::get_if<ReleaseStep>(&step)) {
      node.held[release->id.expert] = 0;
    } else {
      for (const std::uint32_t e : std::get<HoldStep>(step).experts) node.held[e] = 1;
    }
    followers_[i].OnHeld(node.held, true);
  }
  void GoOn(std::size_t i) {
    Node& node = nodes_[i];
    if (!node.step) node.step = followers_[i].TakeStep();
    if (std::exchange(node.told, followers_[i].sequence()) == followers_[i].sequence()) return;
    for (std::size_t to = 0; to < kTriple; ++to) {
      if (to != i) nodes_[to].inbox[i].push_back(followers_[i].Holdings());
    }
  }

  static inline const Triple* asked_ = nullptr;  // whose followers are at work

  std::vector<ClusterPlan> plans_;
  std::size_t most_ = 0;
  std::vector<Node> nodes_;
  std::vector<PlanFollower> followers_;
};

// The number of states, or none if a rule was broken.
std::size_t SearchTriples(const std::vector<TripleHolds>& plans) {
  std::unordered_set<std::string> seen;
  std::deque<std::unique_ptr<Triple>> to_visit;
  const auto visit = [&](std::unique_ptr<Triple> state) {
    if (!seen.insert(state->Key()).second) return true;
    const std::string problem = state->Problem();
    EXPECT_EQ(problem, "") << state->Key();
    if (problem.empty()) to_visit.push_back(std::move(state));
    return problem.empty();
  };
  visit(std::make_unique<Triple>(plans));
  while (!to_visit.empty()) {
    const std::unique_ptr<Triple> state = std::move(to_visit.back());
    to_visit.pop_back();
    for (std::size_t which = 0; which < state->Count(); ++which) {
      auto next = std::make_unique<Triple>(*state);
      next->Do(which);
      if (!visit(std::move(next))) return 0;
    }
    EXPECT_LT(seen.size(), 3'000'000u) << "too many states for a small case";
    if (testing::Test::HasFailure()) return 0;
  }
  return seen.size();
}

TEST(MigrationOrders, InEveryOrderThreeFullNodesPassTheirExpertsRound) {
  if (!kSanitized) {  // the smallest search alone takes long enough there
    EXPECT_GT(SearchTriples({{{0}, {1}, {2}}, {{1}, {2}, {0}}}), 1'000u);
    EXPECT_GT(SearchTriples({{{0}, {1}, {2}}, {{2}, {0}, {1}}}), 1'000u);
  }
  EXPECT_GT(SearchTriples({{{0}, {1}, {2}}, {{1}, {0}, {2}}}), 100u);
}

TEST(MigrationOrders, InEveryOrderTheLastCopyOfAnExpertStays) {
  if (kSanitized) GTEST_SKIP() << "minutes under a sanitizer; the release build searches it";
  EXPECT_GT(SearchTriples({{{0}, {0}, {1}}, {{1}, {1}, {0}}}), 1'000u);
}

TEST(MigrationOrders, InEveryOrderASecondPlanMayComeBeforeTheFirstIsCarriedOut) {
  if (kSanitized) GTEST_SKIP() << "minutes under a sanitizer; the release build searches it";
  EXPECT_GT(SearchTriples({{{0}, {}, {}}, {{}, {0}, {}}, {{}, {}, {0}}}), 100u);
  EXPECT_GT(SearchTriples({{{0}, {}, {}}, {{}, {}, {0}}, {{}, {0}, {}}}), 100u);
}

}  // namespace
}  // namespace troupe
