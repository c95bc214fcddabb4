// What a pass tells its source of experts besides what it asks for. That its rows come out right is
// in transformer_test.cc.
#include "model/forward_pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

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

// Experts that come one by one, every second one's gate and up before its down.
class ComingExperts final : public ExpertSource {
 public:
  explicit ComingExperts(const ModelWeights& weights) : weights_(weights) {}

  void Ask(const ExpertBatch& batch) override {
    layer_ = batch.layer;
    coming_.clear();
    for (const ExpertDemand& demand : batch.demands) coming_.push_back(demand.expert);
    was_begun_ = false;
  }
  std::optional<BegunExpert> TakeBegun() override {
    if (was_begun_ || coming_.size() % 2 == 0) return std::nullopt;
    was_begun_ = true;
    ++begun;
    Mlp first = Of(coming_.front());
    first.down.data = nullptr;  // whoever reads it now is told
    return BegunExpert{.expert = coming_.front(), .weights = first};
  }
  Result<std::span<const ReadyExpert>> Take(bool wait) override {
    ready_.clear();
    if (!wait) return std::span<const ReadyExpert>(ready_);
    Mlp weights = Of(coming_.front());
    if (std::exchange(was_begun_, false)) weights.gate.data = weights.up.data = nullptr;
    ready_.push_back({.expert = coming_.front(), .answer = weights});
    coming_.erase(coming_.begin());
    return std::span<const ReadyExpert>(ready_);
  }
  ExpertUsage usage() const override { return {}; }

  std::size_t begun = 0;

 private:
  const Mlp& Of(std::uint32_t expert) const { return weights_.layers[layer_].moe.experts[expert]; }

  const ModelWeights& weights_;
  std::uint32_t layer_ = 0;
  std::vector<std::uint32_t> coming_;
  bool was_begun_ = false;
  std::vector<ReadyExpert> ready_;
};

TEST(ForwardPass, ExpertsThatAreBegunBeforeTheirDownHasComeGiveTheSameBytes) {
  for (const char* shape : {"tiny-qwen2moe", "tiny-deepseek2", "tiny-gpt-oss"}) {
    const TinyModel model(shape);
    ModelPart whole(model, model.AllLayers()), part(model, model.AllLayers());
    ComingExperts coming(part.weights());
    part.Use(coming);
    Rng rng(TestSeed());
    const auto tokens = model.Tokens(5, rng);
    KvSequence a = whole.NewSequence(5), b = part.NewSequence(5);
    ASSERT_TRUE(whole.Forward({.cache = &a, .tokens = tokens}).ok());
    ASSERT_TRUE(part.Forward({.cache = &b, .tokens = tokens}).ok());
    EXPECT_EQ(part.Logits(0, 5), whole.Logits(0, 5)) << shape;
    EXPECT_GT(coming.begun, 0u);
  }
}

}  // namespace
}  // namespace troupe
