#include "expert/cache/echo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/rng.h"
#include "expert/cache/askers_for_test.h"
#include "expert/cache/expert_cache.h"
#include "expert/cache/lfu.h"
#include "expert/cache/lru.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

constexpr ExpertGrid kEchoLayer{.layers = 1, .experts = 8};
constexpr ExpertGrid kTwoLayers{.layers = 2, .experts = 8};

std::vector<ExpertId> EchoIds(std::uint32_t layer, std::initializer_list<std::uint32_t> experts) {
  std::vector<ExpertId> ids;
  for (const std::uint32_t expert : experts) ids.push_back({layer, expert});
  return ids;
}

void Ask(EvictionPolicy& policy, std::uint32_t layer, std::initializer_list<std::uint32_t> experts,
         std::uint32_t tokens = 1) {
  for (const ExpertId id : EchoIds(layer, experts)) policy.OnAsked(id, One(tokens));
}

ExpertId ChosenByEcho(EvictionPolicy& policy, const std::vector<ExpertId>& candidates) {
  return candidates[policy.Choose(candidates)];
}

TEST(EchoTest, KeepsWhatCameNextTheLastTime) {
  Echo echo(kTwoLayers);
  for (int round = 0; round < 2; ++round) {
    for (const std::uint32_t expert : {0u, 1u, 2u, 3u, 4u, 5u}) {
      Ask(echo, 0, {expert});
      Ask(echo, 1, {expert});
    }
  }
  Ask(echo, 0, {0});
  Ask(echo, 1, {0});
  Ask(echo, 0, {1});
  Ask(echo, 1, {1});
  // 2 follows, then 3, 4 and 5; LRU would give up 2, the one asked for longest ago.
  EXPECT_EQ(ChosenByEcho(echo, EchoIds(1, {2, 3, 4, 5})), (ExpertId{1, 5}));
  EXPECT_EQ(ChosenByEcho(echo, EchoIds(1, {2, 3, 4})), (ExpertId{1, 4}));
  EXPECT_EQ(ChosenByEcho(echo, EchoIds(1, {2, 3})), (ExpertId{1, 3}));
}

TEST(EchoTest, TellsContextsApartByTheLayersBefore) {
  // Layer 1 uses 0 in both contexts; what its next step uses depends on layer 0.
  Echo echo(kTwoLayers);
  for (int round = 0; round < 3; ++round) {
    for (const std::uint32_t context : {4u, 5u}) {
      Ask(echo, 0, {context});
      Ask(echo, 1, {0});
      Ask(echo, 0, {7});
      Ask(echo, 1, {context + 2});
    }
  }
  Ask(echo, 0, {4});
  Ask(echo, 1, {0});
  EXPECT_EQ(ChosenByEcho(echo, EchoIds(1, {6, 7})), (ExpertId{1, 7}));
  Ask(echo, 0, {7});
  Ask(echo, 1, {6});
  Ask(echo, 0, {5});
  Ask(echo, 1, {0});
  EXPECT_EQ(ChosenByEcho(echo, EchoIds(1, {6, 7})), (ExpertId{1, 6}));
}

TEST(EchoTest, ALayerThatHasYetToRunIsExpectedToDoWhatItDidInTheStepThatResemblesThisOne) {
  Echo echo(kTwoLayers);
  for (const std::uint32_t expert : {1u, 2u, 3u, 1u, 2u, 3u}) {
    Ask(echo, 0, {expert});
    Ask(echo, 1, {expert});
  }
  Ask(echo, 0, {1});
  EXPECT_EQ(ChosenByEcho(echo, EchoIds(1, {1, 2})), (ExpertId{1, 2}));
  // The layer that has run is done with it.
  EXPECT_EQ(ChosenByEcho(echo, EchoIds(0, {1, 2})), (ExpertId{0, 1}));
}

TEST(EchoTest, OfExpertsNeededInTheSameStepThoseOfLayersStillAheadStay) {
  Echo echo({.layers = 3, .experts = 8});
  for (int step = 0; step < 8; ++step) {
    for (std::uint32_t layer = 0; layer < 3; ++layer) Ask(echo, layer, {1, 2});
  }
  Ask(echo, 0, {1, 2});
  Ask(echo, 1, {1, 2});
  // All are needed in every step; 2 of layer 1 has just been used, that of layer 2 is next.
  const std::vector<ExpertId> all = {{0, 2}, {1, 2}, {2, 2}};
  EXPECT_EQ(ChosenByEcho(echo, all), (ExpertId{1, 2}));
  EXPECT_EQ(ChosenByEcho(echo, std::vector<ExpertId>{{0, 2}, {2, 2}}), (ExpertId{0, 2}));
}

TEST(EchoTest, WithoutAnythingAlikeKeepsWhatMoreTokensUsedRecently) {
  Echo echo(kEchoLayer);
  Ask(echo, 0, {1, 2, 3, 4, 5, 6}, 1);
  echo.OnAsked({0, 1}, One(40));
  echo.OnAsked({0, 2}, One(10));
  echo.OnAsked({0, 3}, One(20));
  EXPECT_EQ(ChosenByEcho(echo, EchoIds(0, {1, 2, 3})), (ExpertId{0, 2}));
  EXPECT_EQ(ChosenByEcho(echo, EchoIds(0, {1, 2, 3, 7})), (ExpertId{0, 7}));
}

TEST(EchoTest, ManyTokensAtOnceResembleNothing) {
  Echo echo(kTwoLayers);
  // Passes that use most of layer 0, between steps that tell what follows 1: 2.
  for (int round = 0; round < 3; ++round) {
    Ask(echo, 0, {0, 1, 2, 3, 4, 5, 6, 7}, 20);
    Ask(echo, 1, {0, 1, 2, 3, 4, 5, 6, 7}, 20);
    Ask(echo, 0, {1});
    Ask(echo, 1, {1});
    Ask(echo, 0, {2});
    Ask(echo, 1, {2});
  }
  Ask(echo, 0, {1});
  Ask(echo, 1, {1});
  EXPECT_EQ(ChosenByEcho(echo, EchoIds(1, {2, 3, 4})), (ExpertId{1, 3}));
}

// Two sequences that repeat what they do, 0 with experts 0 to 3 and 1 with 4 to 7. In every round
// each has one token: in turn, in either order, or both in one pass. Beside the policy that serves
// both there is one for each sequence alone.
class TwoSequences {
 public:
  // `told`: whether the policy is told whose rows ask.
  TwoSequences(std::vector<std::uint32_t> first, std::vector<std::uint32_t> second, bool told)
      : habits_{std::move(first), std::move(second)}, told_(told) {}

  void Round() {
    switch (rng_.Below(3)) {
      case 0:
        return Pass({0}), Pass({1});
      case 1:
        return Pass({1}), Pass({0});
      default:
        return Pass({0, 1});
    }
  }
  std::uint32_t ExpertOf(std::uint32_t sequence, std::size_t ahead) const {
    return habits_[sequence][(steps_[sequence] + ahead) % habits_[sequence].size()];
  }
  Echo& both() { return both_; }
  Echo& alone(std::uint32_t sequence) { return alone_[sequence]; }

 private:
  void Pass(const std::vector<std::uint32_t>& sequences) {
    for (const std::uint32_t sequence : sequences) ++steps_[sequence];
    for (std::uint32_t layer = 0; layer < 2; ++layer) {
      for (const std::uint32_t sequence : sequences) {
        const ExpertId id{layer, ExpertOf(sequence, 0)};
        const Asker asker{.sequence = told_ ? sequence : 0, .tokens = 1};
        both_.OnAsked(id, {&asker, 1});
        alone_[sequence].OnAsked(id, One(1));
      }
    }
  }

  std::vector<std::uint32_t> habits_[2];
  bool told_;
  Rng rng_{5};
  std::size_t steps_[2] = {0, 0};
  Echo both_{kTwoLayers};  // the second sequence gets its history when it asks
  Echo alone_[2] = {Echo(kTwoLayers), Echo(kTwoLayers)};
};

TEST(EchoTest, EachSequencesRepeatIsRecognisedWhetherPassesAlternateOrAreShared) {
  TwoSequences run({0, 1, 2, 3}, {7, 6, 5, 4}, /*told=*/true);
  for (int round = 0; round < 100; ++round) {
    run.Round();
    if (round < 20) continue;
    for (const std::uint32_t sequence : {0u, 1u}) {
      const std::uint32_t next = run.ExpertOf(sequence, 1), later = run.ExpertOf(sequence, 2);
      EXPECT_EQ(ChosenByEcho(run.both(), EchoIds(1, {next, later})), (ExpertId{1, later})) << round;
    }
  }
}

// What follows the second expert is told by the one three steps before, which a history with
// another sequence's steps in between would not find.
int ChoicesThatDifferFromThoseOfEachAlone(bool told) {
  TwoSequences run({0, 1, 2, 0, 1, 3}, {4, 5, 6, 4, 5, 7, 7}, told);
  int differ = 0;
  for (int round = 0; round < 100; ++round) {
    run.Round();
    for (const std::uint32_t sequence : {0u, 1u}) {
      const std::uint32_t e = 4 * sequence;
      const std::vector<ExpertId> candidates = EchoIds(1, {e, e + 1, e + 2, e + 3});
      const ExpertId alone = ChosenByEcho(run.alone(sequence), candidates);
      differ += ChosenByEcho(run.both(), candidates) != alone ? 1 : 0;
    }
  }
  return differ;
}

TEST(EchoTest, OfOneSequencesExpertsItChoosesAsIfThatWereAlone) {
  EXPECT_EQ(ChoicesThatDifferFromThoseOfEachAlone(/*told=*/true), 0);
  EXPECT_GT(ChoicesThatDifferFromThoseOfEachAlone(/*told=*/false), 0) << "or it shows nothing";
}

TEST(EchoTest, WhatTwoSequencesNeedIsWorthMoreThanWhatOneDoes) {
  Echo echo(kEchoLayer);
  const std::vector<Asker> both = {{.sequence = 0, .tokens = 1}, {.sequence = 1, .tokens = 1}};
  for (int round = 0; round < 20; ++round) {
    echo.OnAsked({0, 1}, std::span(both).first(1));
    echo.OnAsked({0, 2}, both);
    echo.OnAsked({0, 3}, std::span(both).last(1));
  }
  EXPECT_NE(ChosenByEcho(echo, EchoIds(0, {1, 2})), (ExpertId{0, 2}));
  EXPECT_NE(ChosenByEcho(echo, EchoIds(0, {2, 3})), (ExpertId{0, 2}));
}

TEST(EchoTest, ASequenceThatHasEndedHasNoSayAnyMore) {
  Echo echo(kEchoLayer);
  const auto pass = [&](SequenceId sequence, std::uint32_t expert) {
    const Asker asker{.sequence = sequence, .tokens = 1};
    echo.OnAsked({0, expert}, {&asker, 1});
  };
  for (int round = 0; round < 20; ++round) pass(1, 5);
  // One pass later what the other needed is still worth keeping, and many passes later it is not.
  pass(0, 2);
  EXPECT_EQ(ChosenByEcho(echo, EchoIds(0, {5, 7})), (ExpertId{0, 7}));
  for (std::uint64_t i = 0; i < Echo::kPassesAbsent; ++i) pass(0, 2);
  EXPECT_EQ(ChosenByEcho(echo, EchoIds(0, {5, 7})), (ExpertId{0, 5}));
}

// The whole policy by its definition, remembering everything.
class SlowEcho final : public EvictionPolicy {
 public:
  SlowEcho(ExpertGrid grid, const EchoSettings& settings)
      : grid_(grid), settings_(settings), value_(grid.Count()), valued_(grid.Count()) {}
  std::string_view name() const override { return "slow echo"; }

  // Called with whole layers only.
  void Ran(std::uint32_t layer, const std::vector<std::uint32_t>& experts) {
    if (steps_.empty() || layer <= layer_) steps_.emplace_back(grid_.layers);
    layer_ = layer;
    steps_.back()[layer] = {experts.begin(), experts.end()};
    for (std::uint32_t e = 0; e < grid_.experts; ++e) valued_[grid_.Index({layer, e})] = false;
  }
  void OnAsked(ExpertId, std::span<const Asker>) override {}
  std::size_t Choose(std::span<const ExpertId> candidates) override {
    for (const ExpertId id : candidates) {
      if (valued_[grid_.Index(id)]) continue;
      value_[grid_.Index(id)] = Value(id);
      valued_[grid_.Index(id)] = true;
    }
    const auto least = std::ranges::min_element(candidates, {}, [&](ExpertId id) {
      const std::uint32_t ahead = id.layer > layer_
                                      ? id.layer - layer_  // in this step, or the next
                                      : grid_.layers + id.layer - layer_;
      const double steps = static_cast<double>(ahead) / grid_.layers;
      const double half_after = settings_.half_after;
      return std::pair(value_[grid_.Index(id)] * half_after / (half_after + steps), id);
    });
    return static_cast<std::size_t>(least - candidates.begin());
  }

 private:
  using Sets = std::vector<std::set<std::uint32_t>>;

  int Likeness(std::size_t lag) const {
    int likeness = 0;
    for (std::size_t step = lag; step < steps_.size(); ++step) {
      likeness = likeness / 4 + likeness / 8;
      for (std::uint32_t layer = 0; layer < grid_.layers; ++layer) {
        const auto& now = steps_[step][layer];
        for (const std::uint32_t expert : now) {
          if (steps_[step - lag][layer].contains(expert)) {
            likeness += 120 / static_cast<int>(now.size());
          }
        }
      }
    }
    return likeness;
  }
  double Value(ExpertId id) const {
    std::vector<std::pair<int, std::size_t>> matches;  // minus likeness, lag
    for (std::size_t lag = 2; lag < steps_.size(); ++lag) matches.emplace_back(-Likeness(lag), lag);
    std::ranges::sort(matches);
    matches.resize(std::min(matches.size(), settings_.matches));
    double worth = 0, weights = 0;
    for (const auto& [unlike, lag] : matches) {
      const double above = matches.back().first - unlike;
      const double weight = above * above + 1;
      weights += weight;
      std::size_t step = steps_.size() - 1 - lag + (id.layer <= layer_ ? 1 : 0);
      for (double ahead = 0; step < steps_.size() && ahead < 32; ++step, ++ahead) {
        if (!steps_[step][id.layer].contains(id.expert)) continue;
        worth += weight * settings_.half_after / (settings_.half_after + ahead);
        break;
      }
    }
    double recent = 0;
    for (const Sets& step : steps_) {
      if (step[id.layer].empty()) continue;
      const double kept = settings_.recent_kept;
      recent = recent * kept + (step[id.layer].contains(id.expert) ? 1 - kept : 0);
    }
    return (weights > 0 ? worth / weights : 0) + settings_.recent_share * recent;
  }

  ExpertGrid grid_;
  EchoSettings settings_;
  std::vector<Sets> steps_;
  std::uint32_t layer_ = 0;
  std::vector<double> value_;
  std::vector<bool> valued_;
};

// How often it chooses otherwise than the definition does, and than a policy of `others`.
struct Differences {
  int compared = 0, from_definition = 0, from_others = 0;
};

Differences Compare(const EchoSettings& settings, const EchoSettings& others) {
  constexpr ExpertGrid kGrid{.layers = 3, .experts = 16};
  Rng rng(TestSeed());
  Echo echo(kGrid, 1, RouteHistory::kSteps, settings);
  Echo other(kGrid, 1, RouteHistory::kSteps, others);
  SlowEcho slow(kGrid, settings);
  Differences found;
  for (int step = 0; step < 260; ++step) {
    for (std::uint32_t layer = 0; layer < kGrid.layers; ++layer) {
      std::set<std::uint32_t> chosen;
      while (chosen.size() < 3) {
        const std::uint64_t habit = step % 23 * (layer + 1) + chosen.size() * 5;
        chosen.insert(static_cast<std::uint32_t>((rng.Below(4) > 0 ? habit : rng.Below(16)) % 16));
      }
      const std::vector<std::uint32_t> experts(chosen.begin(), chosen.end());
      for (const std::uint32_t expert : experts) {
        echo.OnAsked({layer, expert}, One(1));
        other.OnAsked({layer, expert}, One(1));
      }
      slow.Ran(layer, experts);
      if (step % 3 > 0) continue;
      std::vector<ExpertId> candidates;
      for (std::uint32_t i = 0; i < 8; ++i) {
        candidates.push_back({static_cast<std::uint32_t>(rng.Below(kGrid.layers)),
                              static_cast<std::uint32_t>(rng.Below(kGrid.experts))});
      }
      ++found.compared;
      const ExpertId chosen_by_echo = ChosenByEcho(echo, candidates);
      found.from_definition += chosen_by_echo != ChosenByEcho(slow, candidates) ? 1 : 0;
      found.from_others += chosen_by_echo != ChosenByEcho(other, candidates) ? 1 : 0;
    }
  }
  return found;
}

TEST(EchoTest, ChoosesAsItsDefinitionDoesWhateverItsSettings) {
  const EchoSettings usual;
  std::vector<EchoSettings> all(5);
  all[1].matches = 1;
  all[2].recent_share = 20;
  all[3].recent_share = 20;
  all[3].recent_kept = 0.5;
  all[4].half_after = 0.1;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Differences found = Compare(all[i], i == 3 ? all[2] : usual);
    EXPECT_GT(found.compared, 200);
    // Values that are equal but for rounding may be ordered either way; they are rare.
    EXPECT_LE(found.from_definition, 2) << ToString(all[i]);
    if (i == 0) continue;
    EXPECT_GT(found.from_others, 5) << ToString(all[i]);
  }
}

// Hits of a cache for `slots` experts a layer, a layer's asks at a time as the engine's are.
std::uint64_t HitsOf(std::unique_ptr<EvictionPolicy> policy, ExpertGrid grid, std::uint32_t slots,
                     std::span<const std::vector<std::uint32_t>> steps) {
  ExpertCache cache({.grid = grid,
                     .slots = slots * grid.layers,
                     .quotas = std::vector<std::uint32_t>(grid.layers, slots)},
                    std::move(policy));
  for (std::size_t step = 0; step < steps.size(); ++step) {
    for (std::uint32_t layer = 0; layer < grid.layers; ++layer) {
      std::vector<ExpertCache::Pin> pins;
      std::vector<ExpertId> missed;
      for (const std::uint32_t expert : steps[step]) {
        const ExpertId id{layer, (expert + layer) % grid.experts};
        if (cache.Ask(id, 1) == Residence::kResident) {
          pins.push_back(cache.PinResident(id));
        } else {
          missed.push_back(id);
        }
      }
      for (const ExpertId id : missed) {
        EXPECT_TRUE(cache.Admit(id).has_value());
        cache.OnLoaded(id);
        pins.push_back(cache.PinResident(id));
      }
    }
  }
  return cache.stats().hits;
}

TEST(EchoTest, HitsMoreOftenThanRecencyAndFrequencyWhereTextComesBack) {
  // Sentences from a small stock, in any order.
  Rng rng(3);
  std::vector<std::vector<std::vector<std::uint32_t>>> sentences(12);
  for (auto& sentence : sentences) {
    for (int word = 0; word < 15; ++word) {
      std::set<std::uint32_t> chosen;
      while (chosen.size() < 4) chosen.insert(static_cast<std::uint32_t>(rng.Below(32)));
      sentence.emplace_back(chosen.begin(), chosen.end());
    }
  }
  std::vector<std::vector<std::uint32_t>> steps;
  for (int i = 0; i < 80; ++i) {
    const auto& sentence = sentences[rng.Below(sentences.size())];
    steps.insert(steps.end(), sentence.begin(), sentence.end());
  }
  constexpr ExpertGrid kGrid{.layers = 2, .experts = 32};
  const std::uint64_t lru = HitsOf(std::make_unique<Lru>(kGrid), kGrid, 12, steps);
  const std::uint64_t lfu = HitsOf(std::make_unique<Lfu>(kGrid), kGrid, 12, steps);
  const std::uint64_t echo = HitsOf(std::make_unique<Echo>(kGrid), kGrid, 12, steps);
  EXPECT_GT(echo, std::max(lru, lfu) * 5 / 4);
}

}  // namespace
}  // namespace troupe
