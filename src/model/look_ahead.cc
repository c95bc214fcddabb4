// SMoE's look-ahead: what the next layer's gate says once the answers at hand are in the stream,
// the shared expert's and those of experts in memory, and that has gone through the next layer's
// attention, while the other experts are on their way. The stream itself and what those experts
// read of it stay as they are. The keys and values that are stored on the way the next layer stores
// anew when it runs.
//
// Of passes of more rows than forecasts are made of, and before a layer that keeps a state in place
// of keys, the gate sees the stream without that attention.
#include <algorithm>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "kernels/axpy.h"
#include "kernels/elementwise.h"
#include "kernels/quantize_activations.h"
#include "kernels/rms_norm.h"
#include "model/forward_pass.h"

namespace troupe {

void ForwardPass::ForecastWithAnswers(std::uint32_t layer, const LayerWeights& w,
                                      const LayerWeights& next,
                                      std::span<const ReadyExpert> ready) {
  const Stopwatch watch;
  const std::size_t rows = ForecastRows(), width = config_.width;
  const std::size_t experts = config_.moe.routing.experts;
  std::vector<std::uint8_t> there(experts);
  for (const ReadyExpert& expert : ready) there[expert.expert] = 1;
  ForRows(rows, [&](std::size_t row) {
    const std::size_t token = forecast_rows_[row];
    float* const stream = ws_.forecast_input.Row(row);
    std::copy_n(ws_.stream + token * width, width, stream);
    if (config_.moe.beside_dense) {
      AddAnswersBesideDense(row, w, there, stream);
    } else {
      AddAnswers(token, w.moe, there, stream);
    }
    if (w.output_scale != nullptr) Scale(*w.output_scale, stream, width);
  });
  const bool attends = config_.HasAttention(layer + 1) && !config_.IsRecurrent(layer + 1);
  if (rows == tokens_ && attends) AttendAhead(layer + 1, next);
  const Activations input = ws_.forecast_input.Of(rows);
  ForRows(rows, [&](std::size_t row) {
    float* const stream = ws_.forecast_input.Row(row);
    RmsNorm(stream, next.RouterNorm(), config_.norm_epsilon, stream, width);
    if (input.groups != nullptr) QuantizeActivations(input, row, 1);
  });
  region_.Add(next.moe.router, input, {}, ws_.forecast, experts);
  region_.Run(pool_);
  const GateScores forecast = Forecast(next.moe, 0);
  gate_seconds_ += watch.Seconds();
  experts_.OnForecast(layer + 1, 1, forecast);
  experts_.Advance();  // what it leads to begins at once
}

// Its block works on the pass's stream and on what a block reads of it: both are other rows
// meanwhile, those of forecasts of further layers, which nobody asks.
void ForwardPass::AttendAhead(std::uint32_t layer, const LayerWeights& w) {
  const std::size_t width = config_.width;
  const auto swap_streams = [&] {
    ForRows(tokens_, [&](std::size_t row) {
      float* const stream = ws_.stream + row * width;
      std::swap_ranges(stream, stream + width, ws_.forecast_input.Row(row));
    });
  };
  std::span<std::byte> storage = ws_.forecast_input.storage;
  if (!storage.empty()) storage = storage.subspan(ActivationBytes(tokens_, width));
  const Rows other = {.values = ws_.forecast_input.Row(tokens_), .cols = width, .storage = storage};
  const Rows kept = std::exchange(ws_.normed, other);
  swap_streams();
  if (config_.attention.mla) {
    LatentBlock(layer, w.mla);
  } else {
    AttentionBlock(layer, w.attention);
  }
  swap_streams();
  ws_.normed = kept;
}

// As CombineBesideDense does for all; what is answered is needed again there.
void ForwardPass::AddAnswersBesideDense(std::size_t row, const LayerWeights& w,
                                        std::span<const std::uint8_t> there, float* stream) {
  static_assert(kMostLayersAhead >= 3);  // rows for forecasts of further layers
  const std::size_t width = config_.width, token = forecast_rows_[row];
  const BesideDenseNorms& norms = w.moe.norms;
  float* const answer = ws_.forecast_input.Row(ForecastRows() + row);
  float* const dense = ws_.forecast_input.Row(2 * ForecastRows() + row);
  std::fill_n(answer, width, 0.0f);
  MixAnswers(token, w.moe.extras, there, answer);
  RmsNorm(answer, norms.expert_answer, config_.norm_epsilon, answer, width);
  RmsNorm(ws_.shared_out + token * width, norms.dense_answer, config_.norm_epsilon, dense, width);
  Add(dense, answer, width);
  if (w.ffn_answer_norm != nullptr) {
    RmsNorm(answer, w.ffn_answer_norm, config_.norm_epsilon, answer, width);
  }
  Axpy(config_.residual_scale, answer, stream, width);
}

}  // namespace troupe
