#include "expert/substitution/substitution_gates.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "expert/substitution/routed_layer_for_test.h"
#include "expert/substitution/substitution_spec.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::ElementsAre;

// One token that leans on its first expert, one that spreads its weight; of the four different
// experts that they ask for, all but 0 are missing.
LayerForTest LeaningAndEven() {
  return RoutedByScores({{0.9f, 0.05f, 0.04f, 0.01f, 0, 0}, {0.10f, 0.29f, 0.30f, 0.31f, 0, 0}}, 3,
                        {0, 4, 5});
}

struct Gated {
  std::vector<bool> changed;  // [token]
  std::map<std::string_view, std::uint64_t> counts;
};

Gated AnswerBehindGates(std::string_view text, const LayerForTest& layer,
                        const SubstitutionMaterial& material = {}) {
  SubstitutionChain chain = ParseSubstitution(text, material).value();
  const RoutedLayer view = layer.View();
  const auto answers = chain.Answer(view);
  Gated gated;
  for (std::size_t t = 0; t < layer.tokens(); ++t) {
    const auto mine = answers.subspan(t * layer.top_k, layer.top_k);
    gated.changed.push_back(std::ranges::any_of(
        mine, [](const SlotAnswer& answer) { return answer.kind != AnswerKind::kKeep; }));
  }
  for (const NamedCount& count : chain.links()[0]->counts()) gated.counts[count.name] = count.count;
  return gated;
}

const std::vector<std::string> kControls = {"drop", "best-live", "random", "top"};

TEST(SubstitutionGatesTest, OfControlsAreOpenUnlessGiven) {
  for (const std::string& control : kControls) {
    const Gated all = AnswerBehindGates(control, LeaningAndEven());
    EXPECT_THAT(all.changed, ElementsAre(true, true)) << control;
    for (const std::string_view gate : {"beta_closed", "tau_closed", "gamma_closed"}) {
      EXPECT_EQ(all.counts.at(gate), 0u) << control << ' ' << gate;
    }
  }
}

TEST(SubstitutionGatesTest, LeaveAControlsTokenAloneThatLeansOnFewExperts) {
  for (const std::string& control : kControls) {
    const Gated even = AnswerBehindGates(control + ":tau=0.7", LeaningAndEven());
    EXPECT_THAT(even.changed, ElementsAre(false, true)) << control;
    EXPECT_EQ(even.counts.at("tau_closed"), 1u) << control;
    const Gated close = AnswerBehindGates(control + ":gamma=0.5", LeaningAndEven());
    EXPECT_THAT(close.changed, ElementsAre(false, true)) << control;
    EXPECT_EQ(close.counts.at("gamma_closed"), 1u) << control;
    // The roots of the shares are even enough.
    const Gated warm = AnswerBehindGates(control + ":tau=0.7:temperature=4", LeaningAndEven());
    EXPECT_THAT(warm.changed, ElementsAre(true, true)) << control;
  }
}

TEST(SubstitutionGatesTest, LeaveAControlsPassAloneThatMissesTooMuch) {
  for (const std::string& control : kControls) {
    const Gated share = AnswerBehindGates(control + ":beta=0.75", LeaningAndEven());
    EXPECT_THAT(share.changed, ElementsAre(false, false)) << control;
    EXPECT_EQ(share.counts.at("beta_closed"), 1u) << control;
    EXPECT_EQ(AnswerBehindGates(control + ":budget=3", LeaningAndEven()).counts.at("beta_closed"),
              1u);
    EXPECT_THAT(AnswerBehindGates(control + ":beta=0.76", LeaningAndEven()).changed,
                ElementsAre(true, true));
    EXPECT_THAT(AnswerBehindGates(control + ":budget=4", LeaningAndEven()).changed,
                ElementsAre(true, true));
  }
}

TEST(SubstitutionGatesTest, TakeALayersTauFromCalibrationForControlsToo) {
  SubstitutionMaterial material;
  material.tau_by_layer = {0, 1};
  LayerForTest layer = LeaningAndEven();
  for (const std::string& control : kControls) {
    layer.layer = 0;
    EXPECT_THAT(AnswerBehindGates(control + ":tau=layers", layer, material).changed,
                ElementsAre(true, true));
    layer.layer = 1;
    EXPECT_THAT(AnswerBehindGates(control + ":tau=layers", layer, material).changed,
                ElementsAre(false, false));
  }
}

// What buddies may not answer, none of the controls answers either, and for the same reason.
TEST(SubstitutionGatesTest, CloseForBuddiesAndControlsAlike) {
  Rng rng(TestSeed());
  std::uint64_t closed = 0, changed = 0;
  for (int round = 0; round < 500; ++round) {
    const LayerForTest layer = RandomLayer(rng);
    auto lists = std::make_shared<BuddyLists>();
    lists->grid = {.layers = 1, .experts = layer.experts};
    lists->lists.resize(layer.experts);
    const std::string gates =
        fmt::format(":tau={}:gamma={}:beta={}", rng.Uniform(), rng.Uniform(), 0.5 + rng.Uniform());
    const Gated buddies =
        AnswerBehindGates("buddies" + gates, layer, {.buddies = lists, .tau_by_layer = {}});
    for (const std::string control : {"drop", "best-live", "random"}) {
      const Gated gated = AnswerBehindGates(control + gates, layer);
      for (const std::string_view gate : {"beta_closed", "tau_closed", "gamma_closed"}) {
        ASSERT_EQ(gated.counts.at(gate), buddies.counts.at(gate)) << control << gates;
        closed += gated.counts.at(gate);
      }
      for (const bool token : gated.changed) changed += token ? 1 : 0;
    }
  }
  EXPECT_GT(closed, 100u);
  EXPECT_GT(changed, 100u);
}

TEST(SubstitutionGatesTest, CountAnExpertOnceInTheMissingShare) {
  // Asked for: 0, 1, 2 by two tokens each; 2 is missing.
  const LayerForTest layer =
      RoutedByScores({{0.3f, 0.25f, 0.2f, 0.1f}, {0.3f, 0.25f, 0.2f, 0.1f}}, 3, {0, 1});
  const RoutedLayer view = layer.View();
  LayerAnswers answers;
  answers.Reset(view);
  EXPECT_DOUBLE_EQ(CountAsked(answers).MissingShare(), 1.0 / 3);
}

}  // namespace
}  // namespace troupe
