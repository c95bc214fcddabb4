// What a pass tells its source of experts besides what it asks for. That its rows come out right is
// in transformer_test.cc.
#include "model/forward_pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "model/forecast_rows.h"
#include "model/tiny_model_for_test.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

std::size_t Best(std::span<const float> scores) {
  return static_cast<std::size_t>(std::ranges::max_element(scores) - scores.begin());
}

// Experts in memory whose source wants to know what the gates say, and keeps what it is told.
class CuriousExperts final : public ExpertSource {
 public:
  explicit CuriousExperts(const ModelWeights& weights) : resident_(weights) {}

  void OnPassBegins(const PassFacts& pass) override { passes.push_back(pass); }
  void OnRouted(std::uint32_t layer, std::span<const float> scores,
                std::span<ExpertChoice>) override {
    if (layer == 0) routed.assign(scores.begin(), scores.end());
  }
  void Ask(const ExpertBatch& batch) override {
    for (const ExpertDemand& demand : batch.demands) {
      EXPECT_EQ(batch.RowsOf(demand.expert).size(), demand.tokens);
      rows_asked += demand.tokens;
    }
    resident_.Ask(batch);
  }
  Result<std::span<const ReadyExpert>> Take(bool wait) override { return resident_.Take(wait); }
  std::uint32_t forecast_layers() const override { return 1; }
  void OnGateScores(std::uint32_t layer, const GateScores& scores) override {
    if (layer == 0) said.assign(scores.scores.begin(), scores.scores.end());
  }
  ExpertUsage usage() const override { return {}; }

  std::vector<PassFacts> passes;
  std::vector<float> routed, said;
  std::size_t rows_asked = 0;

 private:
  ResidentExperts resident_;
};

TEST(ForwardPass, ForecastsOfALongPassComeFromItsDecodesAndSomeOfItsPrompt) {
  const TinyModel model("tiny-qwen3moe");
  ModelPart part(model, model.AllLayers(), {.sequences = 3, .chunk = 64});
  CuriousExperts curious(part.weights());
  part.Use(curious);
  Rng rng(TestSeed());
  const auto prompt = model.Tokens(60, rng), first = model.Tokens(1, rng);
  const auto second = model.Tokens(1, rng);
  KvSequence a = part.NewSequence(1), b = part.NewSequence(60), c = part.NewSequence(1);
  const RowGroup batch[] = {{.cache = &a, .tokens = first, .sequence = 0},
                            {.cache = &b, .tokens = prompt, .sequence = 1, .phase = Phase::kPrompt},
                            {.cache = &c, .tokens = second, .sequence = 2}};
  ASSERT_TRUE(part.Forward(batch).ok());

  std::vector<std::uint32_t> rows(kMostForecastRows);
  ASSERT_EQ(ChooseForecastRows(batch, model.config().width, rows), kMostForecastRows);
  EXPECT_EQ(rows.front(), 0u);
  EXPECT_EQ(rows.back(), 61u);
  const std::size_t experts = model.config().moe.routing.experts;
  ASSERT_EQ(curious.said.size(), kMostForecastRows * experts);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(Best(std::span(curious.said).subspan(i * experts, experts)),
              Best(std::span(curious.routed).subspan(rows[i] * experts, experts)))
        << "row " << rows[i];
  }
}

TEST(ForwardPass, TheSourceHearsOfEveryGroupAndIsAskedForEveryChoice) {
  const TinyModel model("tiny-deepseek2");
  ModelPart part(model, {1, 3}, {.sequences = 2});
  CuriousExperts curious(part.weights());
  part.Use(curious);
  const std::size_t width = model.config().width;
  std::vector<float> stream(5 * width);
  Rng rng(TestSeed());
  for (float& value : stream) value = static_cast<float>(rng.Normal());
  KvSequence a = part.NewSequence(4), b = part.NewSequence(4);
  const RowGroup batch[] = {
      {.cache = &a, .stream = std::span(stream).first(2 * width), .sequence = 4, .exact = true},
      {.cache = &b, .stream = std::span(stream).subspan(2 * width), .request = 8}};
  ASSERT_TRUE(part.Forward(batch).ok());
  ASSERT_EQ(curious.passes.size(), 1u);
  EXPECT_EQ(curious.passes[0].first_layer, 1u);
  ASSERT_EQ(curious.passes[0].groups.size(), 2u);
  EXPECT_EQ(curious.passes[0].groups[0].rows, 2u);
  EXPECT_TRUE(curious.passes[0].groups[0].exact);
  EXPECT_EQ(curious.passes[0].groups[1].request, 8u);
  EXPECT_EQ(curious.rows_asked, 2 * 5 * model.config().moe.routing.top_k);
  EXPECT_EQ(part.transformer().expert_uses(), curious.rows_asked);
}

}  // namespace
}  // namespace troupe
