// What the next layer's gate is shown once some experts have answered.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>

#include "model/forecast_rows.h"
#include "model/forward_pass.h"
#include "model/gate_probe.h"
#include "model/stream_observer.h"
#include "model/tiny_model_for_test.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

// Experts in memory, of which some are given later than others.
class SomeLater final : public ExpertSource {
 public:
  SomeLater(const ModelWeights& weights, std::function<bool(std::uint32_t)> at_once)
      : weights_(weights), at_once_(std::move(at_once)) {}

  void Ask(const ExpertBatch& batch) override {
    const std::vector<Mlp>& experts = weights_.layers[batch.layer].moe.experts;
    for (auto& turn : turns_) turn.clear();
    for (const ExpertDemand& demand : batch.demands) {
      turns_[at_once_(demand.expert) ? 0 : 1].push_back(
          {.expert = demand.expert, .answer = experts[demand.expert]});
    }
    taken_ = 0;
  }
  Result<std::span<const ReadyExpert>> Take(bool wait) override {
    TROUPE_CHECK(wait == (taken_ > 0));
    return std::span<const ReadyExpert>(turns_.at(taken_++));
  }
  std::uint32_t forecast_layers() const override { return 3; }
  bool forecasts_with_answers() const override { return true; }
  void OnForecast(std::uint32_t layer, std::uint32_t ahead, const GateScores& said) override {
    EXPECT_EQ(ahead, 1u);
    EXPECT_TRUE(
        forecasts.emplace(layer, std::vector(said.scores.begin(), said.scores.end())).second)
        << "layer " << layer << " was predicted twice";
  }
  ExpertUsage usage() const override { return {}; }

  std::map<std::uint32_t, std::vector<float>> forecasts;

 private:
  const ModelWeights& weights_;
  std::function<bool(std::uint32_t)> at_once_;
  std::vector<std::vector<ReadyExpert>> turns_ = std::vector<std::vector<ReadyExpert>>(2);
  std::size_t taken_ = 0;
};

class StreamsAtEveryPlace final : public StreamObserver {
 public:
  explicit StreamsAtEveryPlace(std::size_t width) : width_(width) {}
  void Saw(std::uint32_t layer, StreamPlace place, const float* rows, std::size_t tokens) override {
    streams[{layer, place}].assign(rows, rows + tokens * width_);
  }
  std::map<std::pair<std::uint32_t, StreamPlace>, std::vector<float>> streams;

 private:
  std::size_t width_;
};

constexpr std::size_t kLookAheadRows = 5;
constexpr std::size_t kLongPass = 40;

using ByLayer = std::map<std::uint32_t, std::vector<float>>;

struct LookedAhead {
  ByLayer forecasts;
  // What their gates say of the stream at their own input, as it left the layer before, and as it
  // was at the input of that layer's gate.
  ByLayer of_input, of_leaving, of_gate_before;
  std::vector<bool> recurrent;  // by layer
  std::vector<LogitRow> logits, resident_logits;
};

// `rows`: of the forecasts, as the gate has its scores.
std::vector<float> SaidOf(GateProbe& probe, std::uint32_t layer, const std::vector<float>& stream,
                          std::span<const std::uint32_t> rows, std::size_t width) {
  std::vector<float> some;
  for (const std::uint32_t row : rows) {
    some.insert(some.end(), stream.begin() + static_cast<std::ptrdiff_t>(row * width),
                stream.begin() + static_cast<std::ptrdiff_t>((row + 1) * width));
  }
  const GateScores said = probe.Ask(layer, some.data(), rows.size());
  return {said.scores.begin(), said.scores.end()};
}

LookedAhead LookAhead(std::string_view shape, const std::function<bool(std::uint32_t)>& at_once,
                      std::size_t count = kLookAheadRows) {
  const TinyModel model(shape);
  Rng rng(TestSeed());
  const auto tokens = model.Tokens(count, rng);
  const std::size_t width = model.config().width;
  LookedAhead looked;
  for (std::uint32_t layer = 0; layer < model.config().layers; ++layer) {
    looked.recurrent.push_back(model.config().IsRecurrent(layer));
  }
  for (const bool plain : {true, false}) {
    ModelPart part(model, model.AllLayers(), {.chunk = kLongPass});
    SomeLater source(part.weights(), at_once);
    StreamsAtEveryPlace kept(width);
    if (!plain) part.Use(source);
    {  // Answers of other tokens lie where those of experts on their way will be.
      KvSequence other = part.NewSequence(count);
      const auto others = model.Tokens(count, rng);
      EXPECT_TRUE(part.Forward({.cache = &other, .tokens = others}).ok());
      source.forecasts.clear();
    }
    part.transformer().set_observer(&kept);
    KvSequence sequence = part.NewSequence(count);
    const RowGroup group{.cache = &sequence, .tokens = tokens};
    std::vector<std::uint32_t> rows(kMostForecastRows);
    rows.resize(ChooseForecastRows({&group, 1}, width, rows));
    EXPECT_TRUE(part.Forward(group).ok());
    (plain ? looked.resident_logits : looked.logits) = part.Logits(0, count);
    if (plain) continue;
    looked.forecasts = source.forecasts;
    GateProbe probe(model.config(), part.weights(), part.threads());
    const auto said = [&](std::uint32_t layer, std::uint32_t at, StreamPlace place) {
      return SaidOf(probe, layer, kept.streams.at({at, place}), rows, width);
    };
    for (const auto& forecast : source.forecasts) {
      const std::uint32_t layer = forecast.first;
      looked.of_input[layer] = said(layer, layer, StreamPlace::kGateInput);
      looked.of_leaving[layer] = said(layer, layer, StreamPlace::kAttentionInput);
      looked.of_gate_before[layer] = said(layer, layer - 1, StreamPlace::kGateInput);
    }
  }
  return looked;
}

// The same sums in the same order.
void ExpectSame(const std::vector<float>& forecast, const std::vector<float>& right) {
  ASSERT_EQ(forecast.size(), right.size());
  for (std::size_t i = 0; i < right.size(); ++i) {
    ASSERT_NEAR(forecast[i], right[i], 1e-5) << "place " << i;
  }
}

bool AtOnce(std::uint32_t) { return true; }
bool LaterAll(std::uint32_t) { return false; }

TEST(LookAhead, WithAllAnswersItIsWhatTheNextGateSays) {
  for (const char* shape :
       {"tiny-qwen2moe", "tiny-qwen3moe", "tiny-deepseek2", "tiny-gemma4", "tiny-qwen35moe"}) {
    SCOPED_TRACE(shape);
    const LookedAhead looked = LookAhead(shape, AtOnce);
    ASSERT_FALSE(looked.forecasts.empty());
    for (const auto& [layer, forecast] : looked.forecasts) {
      SCOPED_TRACE(layer);
      // A state cannot be stored anew, as keys are.
      ExpectSame(forecast,
                 looked.recurrent[layer] ? looked.of_leaving.at(layer) : looked.of_input.at(layer));
    }
  }
}

TEST(LookAhead, LongPassesAreNotTakenThroughTheNextAttention) {
  for (const char* shape : {"tiny-qwen2moe", "tiny-deepseek2"}) {
    SCOPED_TRACE(shape);
    const LookedAhead looked = LookAhead(shape, AtOnce, kLongPass);
    ASSERT_FALSE(looked.forecasts.empty());
    for (const auto& [layer, forecast] : looked.forecasts) {
      ExpectSame(forecast, looked.of_leaving.at(layer));
    }
  }
}

TEST(LookAhead, WhatIsStillOnItsWayIsLeftOut) {
  // Without shared experts nothing at all has answered.
  const LookedAhead none = LookAhead("tiny-qwen3moe", LaterAll, kLongPass);
  ASSERT_FALSE(none.forecasts.empty());
  for (const auto& [layer, forecast] : none.forecasts) {
    ExpectSame(forecast, none.of_gate_before.at(layer));
  }
  const ByLayer all = LookAhead("tiny-qwen2moe", AtOnce).forecasts;
  const ByLayer shared = LookAhead("tiny-qwen2moe", LaterAll).forecasts;
  const ByLayer some =
      LookAhead("tiny-qwen2moe", [](std::uint32_t e) { return e % 2 == 0; }).forecasts;
  ASSERT_FALSE(all.empty());
  for (const auto& [layer, forecast] : all) {
    EXPECT_NE(forecast, shared.at(layer));
    EXPECT_NE(forecast, some.at(layer));
    EXPECT_NE(shared.at(layer), some.at(layer));
  }
}

// The experts that come later read what they would have read, and attention what it would have.
TEST(LookAhead, ChangesNoAnswer) {
  for (const char* shape :
       {"tiny-qwen2moe", "tiny-qwen3moe", "tiny-deepseek2", "tiny-gemma4", "tiny-qwen35moe"}) {
    for (const std::size_t count : {std::size_t{1}, kLookAheadRows, kLongPass}) {
      for (const auto& at_once : {AtOnce, LaterAll}) {
        const LookedAhead looked = LookAhead(shape, at_once, count);
        EXPECT_EQ(looked.logits, looked.resident_logits) << shape << ", " << count << " rows";
      }
    }
  }
}

}  // namespace
}  // namespace troupe
