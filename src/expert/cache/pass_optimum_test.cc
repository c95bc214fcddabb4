#include "expert/cache/pass_optimum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

struct Visit {
  std::uint32_t layer = 0;
  std::vector<std::uint32_t> experts;
};

constexpr ExpertGrid kPassGrid{.layers = 2, .experts = 4};

// Layers in turn; of each between one and all experts.
std::vector<Visit> RandomVisits(ExpertGrid grid, std::size_t passes, std::size_t most, Rng& rng) {
  std::vector<Visit> visits;
  for (std::size_t pass = 0; pass < passes; ++pass) {
    for (std::uint32_t layer = 0; layer < grid.layers; ++layer) {
      Visit visit{.layer = layer};
      const std::size_t count = 1 + rng.Below(most);
      while (visit.experts.size() < count) {
        const auto expert = static_cast<std::uint32_t>(rng.Below(grid.experts));
        const bool is_new = std::ranges::find(visit.experts, expert) == visit.experts.end();
        if (is_new) visit.experts.push_back(expert);
      }
      visits.push_back(std::move(visit));
    }
  }
  return visits;
}

std::uint64_t Play(PassOptimum& optimum, ExpertGrid grid, const std::vector<Visit>& visits) {
  std::vector<std::vector<Optimum::Use>> uses;
  std::vector<std::uint64_t> next(grid.Count(), Optimum::kNever);
  std::uint64_t position = 0;
  for (const Visit& visit : visits) position += visit.experts.size();
  for (auto visit = visits.rbegin(); visit != visits.rend(); ++visit) {
    std::vector<Optimum::Use> asks;
    for (const std::uint32_t expert : visit->experts) {
      const ExpertId id{visit->layer, expert};
      asks.push_back({.id = id, .next = next[grid.Index(id)]});
    }
    for (const std::uint32_t expert : visit->experts) {
      next[grid.Index({visit->layer, expert})] = --position;
    }
    uses.push_back(std::move(asks));
  }
  std::uint64_t hits = 0;
  for (std::size_t i = 0; i < visits.size(); ++i) {
    hits += optimum.Play(visits[i].layer, uses[visits.size() - 1 - i]);
  }
  EXPECT_EQ(hits, optimum.hits());
  return hits;
}

// By trying everything that a pool of slots may hold after each visit.
class Exhaustive {
 public:
  Exhaustive(ExpertGrid grid, const std::vector<Visit>& visits, int slots, bool last_load_stays)
      : grid_(grid), visits_(visits), slots_(slots), last_load_stays_(last_load_stays) {}

  std::uint64_t MostHits(std::size_t at = 0, std::uint32_t held = 0) {
    if (at == visits_.size()) return 0;
    if (const auto found = known_.find({at, held}); found != known_.end()) return found->second;
    std::uint32_t asked = 0;
    for (const std::uint32_t expert : visits_[at].experts) {
      asked |= 1u << grid_.Index({visits_[at].layer, expert});
    }
    const bool fits = std::popcount(asked) <= slots_;
    const std::uint32_t had = held | asked;
    std::uint64_t most = 0;
    for (std::uint32_t kept = had;; kept = (kept - 1) & had) {
      const bool pinned = !fits || (kept & asked) == asked;
      const std::uint32_t loaded = asked & ~held;
      const bool last = !last_load_stays_ || loaded == 0 || (kept & loaded) != 0;
      if (std::popcount(kept) <= slots_ && pinned && last) {
        most = std::max(most, MostHits(at + 1, kept));
      }
      if (kept == 0) break;
    }
    most += static_cast<std::uint64_t>(std::popcount(held & asked));
    return known_[{at, held}] = most;
  }

 private:
  ExpertGrid grid_;
  const std::vector<Visit>& visits_;
  int slots_;
  bool last_load_stays_;
  std::map<std::pair<std::size_t, std::uint32_t>, std::uint64_t> known_;
};

TEST(PassOptimumTest, OfOnePoolItIsTheBestOfAllThatMayBeHeldAfterEachLayer) {
  Rng rng(TestSeed());
  for (int round = 0; round < 12; ++round) {
    const std::vector<Visit> visits = RandomVisits(kPassGrid, 5, kPassGrid.experts, rng);
    for (std::uint32_t slots = 1; slots <= 7; ++slots) {
      PassOptimum optimum({.grid = kPassGrid, .slots = slots, .quotas = {}});
      EXPECT_EQ(Play(optimum, kPassGrid, visits),
                Exhaustive(kPassGrid, visits, static_cast<int>(slots), false).MostHits())
          << "round " << round << ", slots " << slots;
    }
  }
}

// What a cache does that gives every miss a slot: the last one loaded is in it afterwards.
TEST(PassOptimumTest, ACacheThatLoadsEveryMissHasNoMoreHitsAndAsManyWherePassesFit) {
  Rng rng(TestSeed());
  std::uint64_t fewer = 0;
  for (int round = 0; round < 12; ++round) {
    const std::vector<Visit> visits = RandomVisits(kPassGrid, 5, kPassGrid.experts, rng);
    for (std::uint32_t slots = 1; slots <= 7; ++slots) {
      PassOptimum optimum({.grid = kPassGrid, .slots = slots, .quotas = {}});
      const std::uint64_t hits = Play(optimum, kPassGrid, visits);
      const std::uint64_t loading =
          Exhaustive(kPassGrid, visits, static_cast<int>(slots), true).MostHits();
      EXPECT_LE(loading, hits) << "round " << round << ", slots " << slots;
      if (slots >= kPassGrid.experts) {
        EXPECT_EQ(loading, hits) << "round " << round << ", slots " << slots;
      }
      fewer += hits - loading;
    }
  }
  EXPECT_GT(fewer, 0u);  // there were crowded passes in which that matters
}

TEST(PassOptimumTest, OfALayerWithItsQuotaItIsTheBestOfAllThatTheLayerMayHold) {
  Rng rng(TestSeed());
  constexpr ExpertGrid kOne{.layers = 1, .experts = 7};
  for (int round = 0; round < 12; ++round) {
    const std::vector<Visit> visits = RandomVisits(kOne, 8, 4, rng);
    for (std::uint32_t slots = 1; slots <= 6; ++slots) {
      PassOptimum optimum({.grid = kOne, .slots = slots, .quotas = {slots}});
      EXPECT_EQ(Play(optimum, kOne, visits),
                Exhaustive(kOne, visits, static_cast<int>(slots), false).MostHits())
          << "round " << round << ", slots " << slots;
    }
  }
}

TEST(PassOptimumTest, ALayerMayHoldMoreThanItsQuotaUntilOthersComeToTheirs) {
  constexpr ExpertGrid kTwo{.layers = 2, .experts = 4};
  PassOptimum optimum({.grid = kTwo, .slots = 4, .quotas = {2, 2}});
  EXPECT_EQ(optimum.CapacityOf(0), 4u);
  const std::vector<Visit> visits = {{0, {0, 1, 2, 3}}, {0, {0, 1, 2, 3}}, {1, {0}},
                                     {0, {0, 1, 2, 3}}, {1, {1, 0}},       {0, {0, 1, 2, 3}}};
  // 4 the first time, then 3, 1 of the other layer, then 2.
  EXPECT_EQ(Play(optimum, kTwo, visits), 4u + 3 + 1 + 2);
  EXPECT_EQ(optimum.CapacityOf(0), 2u);
  EXPECT_EQ(optimum.CapacityOf(1), 2u);
}

TEST(PassOptimumTest, ALayerWithoutAQuotaHasASlotNonetheless) {
  constexpr ExpertGrid kTwo{.layers = 2, .experts = 4};
  PassOptimum optimum({.grid = kTwo, .slots = 2, .quotas = {2, 0}});
  EXPECT_EQ(Play(optimum, kTwo, {{0, {0, 1}}, {1, {3}}, {1, {3}}, {0, {0, 1}}}), 3u);
}

// Three experts in turn and two slots: who must load keeps one of two that it needs soon.
TEST(PassOptimumTest, WhereAMissNeedsNoSlotMoreMayStay) {
  constexpr ExpertGrid kOne{.layers = 1, .experts = 3};
  const std::vector<Visit> visits = {{0, {0}}, {0, {1}}, {0, {2}}, {0, {0}}, {0, {1}}};
  PassOptimum loads({.grid = kOne, .slots = 2, .quotas = {}});
  PassOptimum passes_over({.grid = kOne, .slots = 2, .quotas = {}}, /*loads_all=*/false);
  EXPECT_EQ(Play(loads, kOne, visits), 1u);
  EXPECT_EQ(Play(passes_over, kOne, visits), 2u);
}

}  // namespace
}  // namespace troupe
