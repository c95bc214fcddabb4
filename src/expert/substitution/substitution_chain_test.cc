#include "expert/substitution/substitution_chain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "expert/substitution/routed_layer_for_test.h"
#include "expert/substitution/substitution_spec.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Lists in which every expert is every other's buddy, in a shuffled order.
SubstitutionMaterial Everyone(Rng& rng, std::uint32_t experts) {
  auto lists = std::make_shared<BuddyLists>();
  lists->grid = {.layers = 1, .experts = experts};
  for (std::uint32_t e = 0; e < experts; ++e) {
    std::vector<Buddy> list;
    for (std::uint32_t b = 0; b < experts; ++b) {
      if (b != e) list.push_back({b, 1.0f / static_cast<float>(experts)});
    }
    std::shuffle(list.begin(), list.end(), rng);
    lists->lists.push_back(std::move(list));
  }
  return {.buddies = lists, .tau_by_layer = {}};
}

SubstitutionChain Parsed(std::string_view text, const SubstitutionMaterial& material = {},
                         const SubstitutionLimits& limits = {}) {
  return ParseSubstitution(text, material, limits).value();
}

const std::vector<float> kRow = {0.40f, 0.13f, 0.12f, 0.10f, 0.09f, 0.08f, 0.06f, 0.02f};

TEST(SubstitutionChainTest, LaterLinksSeeWhatEarlierOnesLeftOpen) {
  const LayerForTest layer = RoutedByScores({kRow}, 3, {5});  // 0, 1, 2 are missing
  const RoutedLayer view = layer.View();
  SubstitutionChain chain = Parsed("smoe:alpha=0.3+drop:most-share=0.5");
  const auto answers = chain.Answer(view);
  EXPECT_THAT(answers, ElementsAre(SlotAnswer{0, 0.40f, AnswerKind::kKeep},
                                   SlotAnswer{1, 0, AnswerKind::kDrop},
                                   SlotAnswer{5, 0.08f, AnswerKind::kSubstitute}));
  const SubstitutionCounts counts = chain.counts();
  EXPECT_EQ(counts.layers, 1u);
  EXPECT_EQ(counts.tokens, 1u);
  EXPECT_EQ(counts.slots, 3u);
  EXPECT_EQ(counts.missing, 3u);
  EXPECT_EQ(counts.waited, 1u);
  EXPECT_EQ(counts.substituted, 1u);
  EXPECT_EQ(counts.dropped, 1u);
  EXPECT_EQ(counts.low_bit, 0u);
  EXPECT_EQ(counts.tokens_changed, 1u);
  EXPECT_EQ(counts.loads_before, 3u);
  EXPECT_EQ(counts.loads_after, 1u);
}

TEST(SubstitutionChainTest, CountsCopiesOfFewerBits) {
  LayerForTest layer = RoutedByScores({kRow}, 3, {5});
  layer.low_bit = {0, 1, 1, 1, 1, 1, 1, 1};
  SubstitutionChain chain = Parsed("low-bit");
  chain.Answer(layer.View());
  EXPECT_EQ(chain.counts().low_bit, 2u);
  EXPECT_EQ(chain.counts().waited, 1u);
  EXPECT_EQ(chain.counts().loads_before, 3u);
  EXPECT_EQ(chain.counts().loads_after, 1u);
}

TEST(SubstitutionChainTest, PassesOverLargeBatches) {
  const LayerForTest layer = RoutedByScores({kRow, kRow}, 3, {4, 5});
  const RoutedLayer two = layer.View();
  SubstitutionChain one_token = Parsed("drop", {}, {.most_tokens = 1});
  const auto answers = one_token.Answer(two);
  EXPECT_EQ(std::vector(answers.begin(), answers.end()), AllKept(layer));
  EXPECT_EQ(one_token.counts().passed_over, 1u);
  EXPECT_EQ(one_token.counts().layers, 0u);
  SubstitutionChain chain = Parsed("drop");
  chain.Answer(two);
  EXPECT_EQ(chain.counts().dropped, 6u);
}

TEST(SubstitutionChainTest, WaitsForLoadsUnderWay) {
  LayerForTest layer = RoutedByScores({kRow}, 3, {});
  layer.residence[1] = Residence::kLoading;
  const RoutedLayer view = layer.View();
  SubstitutionChain waits = Parsed("drop");
  EXPECT_EQ(waits.Answer(view)[1].kind, AnswerKind::kKeep);
  EXPECT_EQ(waits.counts().missing, 2u);
}

TEST(SubstitutionChainTest, CountsALoadOnceHoweverManyTokensWantIt) {
  const LayerForTest layer = RoutedByScores({kRow, kRow}, 3, {0});
  const RoutedLayer view = layer.View();
  SubstitutionChain chain = Parsed("exact");
  chain.Answer(view);
  EXPECT_EQ(chain.counts().missing, 4u);
  EXPECT_EQ(chain.counts().loads_before, 2u);
  EXPECT_EQ(chain.counts().loads_after, 2u);
}

TEST(SubstitutionChainTest, ReunitesTokensWithExpertsThatAreLoadedAnyway) {
  // The second token keeps 1, its best; the first dropped it.
  const LayerForTest layer =
      RoutedByScores({{0.5f, 0.2f, 0.1f, 0.05f}, {0.1f, 0.7f, 0.15f, 0.05f}}, 2, {0, 2});
  const RoutedLayer view = layer.View();
  SubstitutionChain alone = Parsed("drop:most-share=0.5");
  EXPECT_EQ(alone.Answer(view)[1].kind, AnswerKind::kDrop);
  SubstitutionChain chain = Parsed("drop:most-share=0.5+reunite");
  const auto answers = chain.Answer(view);
  EXPECT_EQ(std::vector(answers.begin(), answers.end()), AllKept(layer));
  EXPECT_EQ(chain.links()[1]->counts(), (std::vector<NamedCount>{{"restored", 1}}));
  EXPECT_EQ(chain.counts().tokens_changed, 0u);
  EXPECT_EQ(chain.counts().loads_after, alone.counts().loads_after);
}

TEST(SubstitutionChainTest, ExplainsItselfWithEveryCounter) {
  SubstitutionChain chain = Parsed("smoe:alpha=0.3+drop");
  const LayerForTest layer = RoutedByScores({kRow}, 3, {5});
  const RoutedLayer view = layer.View();
  chain.Answer(view);
  const std::string text = Explain(chain.Report());
  EXPECT_THAT(text, HasSubstr("substitution smoe:alpha=0.3+drop, passes of at most 8 tokens"));
  EXPECT_THAT(text, HasSubstr("3 of 3 slots missed: 0 waited, 1 substituted"));
  EXPECT_THAT(text, HasSubstr("low_score_missing 2"));
  EXPECT_THAT(text, HasSubstr("loads 0 instead of 3"));
}

const std::vector<std::string_view> kChains = {
    "smoe:alpha=0.5",
    "buddies:tau=-1:beta=2:rho=all",
    "buddies:tau=0.5:beta=0.9:rho=1",
    "random",
    "random:rho=1",
    "best-live",
    "best-live:rho=2",
    "drop",
    "drop:renormalise=1",
    "low-bit",
    "bias:bonus=0.5",
    "top:keep=2",
    "smoe:alpha=0.4+buddies:tau=0.2:beta=2:rho=2+low-bit:most-share=0.4+drop:rho=2",
    "low-bit:most-share=0.2+smoe:alpha=1+bias:bonus=1:rho=2+top:keep=3+reunite",
    "drop:most-share=0.1+smoe:alpha=0.6+random+reunite",
};

TEST(SubstitutionProperties, NoChainBreaksWhatMustAlwaysHold) {
  Rng rng(TestSeed());
  for (const std::string_view text : kChains) {
    SubstitutionCounts sums;
    for (int round = 0; round < 600; ++round) {
      const LayerForTest layer = RandomLayer(rng);
      const RoutedLayer view = layer.View();
      SubstitutionChain chain = Parsed(text, Everyone(rng, layer.experts));
      const auto answers = chain.Answer(view);
      std::set<std::uint32_t> loaded;  // because some token keeps it
      for (std::size_t i = 0; i < answers.size(); ++i) {
        if (answers[i].kind == AnswerKind::kKeep) loaded.insert(answers[i].expert);
      }
      for (std::size_t t = 0; t < layer.tokens(); ++t) {
        std::set<std::uint32_t> seen;
        bool changed = false;
        for (std::uint32_t slot = 0; slot < layer.top_k; ++slot) {
          const SlotAnswer& answer = answers[t * layer.top_k + slot];
          const ExpertChoice& chosen = layer.chosen[t * layer.top_k + slot];
          changed =
              changed || answer.kind == AnswerKind::kSubstitute || answer.kind == AnswerKind::kDrop;
          EXPECT_TRUE(std::isfinite(answer.weight) && answer.weight >= 0);
          if (answer.kind == AnswerKind::kDrop) {
            EXPECT_EQ(answer.weight, 0);
            continue;
          }
          EXPECT_TRUE(seen.insert(answer.expert).second) << text << ": two slots on one expert";
          if (answer.kind == AnswerKind::kSubstitute) {
            EXPECT_TRUE(layer.Resident(answer.expert) || loaded.contains(answer.expert))
                << text << ": a substitute that nobody has or brings";
            EXPECT_NE(answer.expert, chosen.expert);
          } else {
            EXPECT_EQ(answer.expert, chosen.expert);
          }
          EXPECT_TRUE(answer.kind != AnswerKind::kLowBit || layer.low_bit[answer.expert] == 1);
        }
        if (changed) continue;
        for (std::uint32_t slot = 0; slot < layer.top_k; ++slot) {
          EXPECT_EQ(answers[t * layer.top_k + slot].weight,
                    layer.chosen[t * layer.top_k + slot].weight);
        }
      }
      const SubstitutionCounts& counts = chain.counts();
      EXPECT_LE(counts.loads_after, counts.loads_before) << text;
      sums.substituted += counts.substituted;
      sums.dropped += counts.dropped;
      sums.low_bit += counts.low_bit;
    }
    EXPECT_GT(sums.substituted + sums.dropped + sums.low_bit, 100u) << text << " does nothing";
  }
}

TEST(SubstitutionProperties, NoTokenIsChangedMoreOftenThanRho) {
  Rng rng(TestSeed());
  for (const std::string_view policy :
       {"buddies:tau=-1:beta=2", "random", "best-live", "drop", "bias:bonus=1"}) {
    std::uint32_t most = 0;
    for (int round = 0; round < 500; ++round) {
      const LayerForTest layer = RandomLayer(rng);
      const RoutedLayer view = layer.View();
      const auto rho = static_cast<std::uint32_t>(rng.Below(3));
      SubstitutionChain chain =
          Parsed(fmt::format("{}:rho={}", policy, rho), Everyone(rng, layer.experts));
      const auto answers = chain.Answer(view);
      for (std::size_t t = 0; t < layer.tokens(); ++t) {
        const auto mine = answers.subspan(t * layer.top_k, layer.top_k);
        const auto changed = static_cast<std::uint32_t>(std::ranges::count_if(
            mine, [](const SlotAnswer& answer) { return answer.kind != AnswerKind::kKeep; }));
        EXPECT_LE(changed, rho) << policy;
        most = std::max(most, changed);
      }
    }
    EXPECT_EQ(most, 2u) << policy << " never reaches its limit";
  }
}

TEST(SubstitutionProperties, ClosedChainsAreExact) {
  Rng rng(TestSeed());
  for (const std::string_view text :
       {"exact", "smoe:alpha=0", "buddies:tau=1", "buddies:tau=-1:beta=0", "buddies:tau=-1:gamma=0",
        "buddies:tau=-1:beta=2:rho=0", "buddies:tau=-1:beta=2:rank=0", "bias:bonus=0", "bias:rho=0",
        "random:rho=0", "best-live:rho=0", "drop:rho=0", "drop:most-share=0", "top:keep=16",
        "smoe:alpha=0+buddies:tau=1+reunite"}) {
    for (int round = 0; round < 200; ++round) {
      LayerForTest layer = RandomLayer(rng);
      for (ExpertChoice& slot : layer.chosen) slot.weight += 0.01f;  // none without weight
      const RoutedLayer view = layer.View();
      SubstitutionChain chain = Parsed(text, Everyone(rng, layer.experts));
      const auto answers = chain.Answer(view);
      ASSERT_EQ(std::vector(answers.begin(), answers.end()), AllKept(layer)) << text;
      ASSERT_EQ(chain.counts().tokens_changed, 0u);
    }
  }
}

TEST(LayerAnswersDeathTest, StopsPoliciesThatBreakTheRules) {
  const LayerForTest layer = RoutedByScores({kRow}, 3, {0, 4});
  const RoutedLayer view = layer.View();
  LayerAnswers answers;
  answers.Reset(view);
  EXPECT_DEATH(answers.Substitute(0, 1, 5, SubstituteWeight::kOfTheSlot), "Resident");
  EXPECT_DEATH(answers.Substitute(0, 1, 0, SubstituteWeight::kOfTheSlot), "NewTo");
  EXPECT_DEATH(answers.TakeLowBit(0, 1), "low_bit");
  answers.Substitute(0, 1, 4, SubstituteWeight::kOfTheSlot);
  EXPECT_DEATH(answers.Substitute(0, 2, 4, SubstituteWeight::kOfTheSlot), "NewTo");
  EXPECT_DEATH(answers.Drop(0, 1, DroppedWeight::kLost), "kKeep");
}

}  // namespace
}  // namespace troupe
