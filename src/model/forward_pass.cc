#include "model/forward_pass.h"

#include "kernels/axpy.h"
#include "kernels/elementwise.h"
#include "kernels/quantize_activations.h"
#include "kernels/rms_norm.h"
#include "model/expert_mlp.h"
#include "model/forecast_rows.h"

namespace troupe {

ForwardPass::ForwardPass(const PassTools& tools, Batch batch, Workspace& workspace,
                         std::size_t rows)
    : config_(tools.config),
      experts_(tools.experts),
      pool_(tools.pool),
      region_(tools.region),
      attention_(tools.attention),
      observer_(tools.observer),
      groups_(tools.groups != nullptr && tools.groups->BeginPass(batch, tools.config.width)
                  ? tools.groups
                  : nullptr),
      gate_seconds_(tools.gate_seconds),
      batch_(batch),
      ws_(workspace),
      tokens_(rows) {
  forecast_rows_ =
      ws_.forecast_rows.first(ChooseForecastRows(batch, config_.width, ws_.forecast_rows));
}

void ForwardPass::NormaliseStream(const float* weight, const Rows& to) {
  const std::size_t width = config_.width;
  const Activations normed = to.Of(tokens_);
  ForRows(tokens_, [&](std::size_t t) {
    RmsNorm(ws_.stream + t * width, weight, config_.norm_epsilon, to.Row(t), width);
    if (normed.groups != nullptr) QuantizeActivations(normed, t, 1);
  });
}

ForwardPass::GroupRows ForwardPass::RowsOf(std::size_t group) const {
  std::size_t first = 0;
  for (std::size_t g = 0; g < group; ++g) first += batch_[g].Rows(config_.width);
  return {.cache = batch_[group].cache, .first = first, .count = batch_[group].Rows(config_.width)};
}

void ForwardPass::Attend(std::uint32_t layer, const float* sinks, const float* q, std::size_t q_row,
                         float* out, std::size_t out_row) {
  const bool encodes = config_.IsEncoder(layer);
  std::size_t first = 0;
  for (const RowGroup& group : batch_) {
    const std::size_t rows = group.Rows(config_.width);
    attention_.Add({.layout = group.cache->LayoutOf(layer),
                    .kv = group.cache->Layer(layer),
                    .heads = config_.AttentionOf(layer).heads,
                    .scale = config_.AttentionOf(layer).scale,
                    .start = group.cache->length(),
                    .tokens = rows,
                    .window = config_.WindowOf(layer),
                    .first = group.cache->encoded(),
                    .keys = encodes ? rows : 0,
                    .bias = ws_.PositionBiasOf(config_, layer),
                    .sinks = sinks,
                    .q = q + first * q_row,
                    .q_stride = q_row,
                    .out = out + first * out_row,
                    .out_stride = out_row});
    first += rows;
  }
  attention_.Run(pool_, ws_);
}

void ForwardPass::ProjectAttended(const Rows& rows, const Linear& out, const float* answer_norm) {
  const Activations attended = rows.Of(tokens_);
  QuantizeRows(attended, pool_);
  // The projection lands where the normed stream was: nobody reads that any more.
  region_.Add(out, attended, {}, ws_.normed.values, config_.width);
  region_.Run(pool_);
  AddToStream(ws_.normed.values, answer_norm);
}

void ForwardPass::AddToStream(float* answers, const float* norm) {
  const std::size_t width = config_.width;
  ForRows(tokens_, [&](std::size_t t) {
    float* const answer = answers + t * width;
    if (norm != nullptr) RmsNorm(answer, norm, config_.norm_epsilon, answer, width);
    Axpy(config_.residual_scale, answer, ws_.stream + t * width, width);
  });
}

void ForwardPass::ScaleStream(float factor) {
  const std::size_t width = config_.width;
  ForRows(tokens_, [&](std::size_t t) { Scale(factor, ws_.stream + t * width, width); });
}

}  // namespace troupe
