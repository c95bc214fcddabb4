// A batch of an encoder-decoder in two halves (docs/design/encoder-decoder.md): the prompts of
// sequences that begin go through the encoder's layers and leave keys and values for the decoder's
// cross-attention; then all other rows go through the decoder's. Each half is a pass of its own for
// whoever watches passes.
#include <algorithm>

#include "model/forward_pass.h"
#include "model/position_bias.h"
#include "model/transformer.h"

namespace troupe {

// How many rows of a sequence that begins are the encoder's.
Result<std::size_t> Transformer::EncoderRows(const RowGroup& group, const Workspace& ws) const {
  const std::int32_t start = config_.encoder->decoder_start;
  const auto found = std::ranges::find(group.tokens, start);
  const auto rows = static_cast<std::size_t>(found - group.tokens.begin());
  if (rows > 0 && found != group.tokens.end()) return rows;
  return InvalidArgument(
      "a prompt that begins with {} tokens for the encoder, of {}, expected some and behind them "
      "the token {} that the decoder begins with; it is read whole, in a pass of at most {} rows",
      rows, group.tokens.size(), start, ws.chunk());
}

void Transformer::FillPositionBiases(Workspace& ws) const {
  if (ws.has_position_bias) return;
  const EncoderConfig& encoder = *config_.encoder;
  const std::uint32_t heads = config_.attention.heads;
  DistanceBuckets buckets{
      .count = encoder.buckets, .max_distance = encoder.max_distance, .both_ways = true};
  const auto fill = [&](const float* table, std::span<float> out, std::size_t behind) {
    const std::size_t count = out.size() / heads;
    const auto first = static_cast<std::int64_t>(behind + 1) - static_cast<std::int64_t>(count);
    FillPositionBias(buckets, table, heads, first, count, out);
  };
  fill(weights_.encoder_bias, ws.encoder_bias, ws.chunk() - 1);
  buckets.both_ways = false;
  fill(weights_.decoder_bias, ws.decoder_bias, 0);
  ws.has_position_bias = true;
}

Status Transformer::RunHalf(Batch batch, LayerRange layers, Workspace& workspace) {
  PlaceRows(batch, workspace);
  const PassFacts facts = FactsOf(batch, layers);
  experts_.OnPassBegins(facts);
  if (route_observer_ != nullptr) route_observer_->PassBegins(facts);
  BeginPass(batch);
  return RunLayers(batch, layers, workspace);
}

Status Transformer::Encode(Batch prompts, Workspace& workspace) {
  const std::uint32_t end = config_.encoder->layers;
  TROUPE_RETURN_IF_ERROR(RunHalf(prompts, {0, end}, workspace));
  ForwardPass(Tools(), prompts, workspace, rows_)
      .StoreEncoded(weights_.encoder_norm, std::span(weights_.layers).subspan(end), end);
  for (const RowGroup& group : prompts) group.cache->EndEncoder(group.tokens.size());
  if (route_observer_ != nullptr) route_observer_->PassEnded();
  return OkStatus();
}

Status Transformer::Decode(Batch answers, Workspace& workspace) {
  TROUPE_RETURN_IF_ERROR(RunHalf(answers, {config_.encoder->layers, config_.layers}, workspace));
  for (const RowGroup& group : answers) group.cache->Advance(group.tokens.size());
  if (route_observer_ != nullptr) route_observer_->PassEnded();
  return OkStatus();
}

Status Transformer::ForwardInHalves(Batch batch, Workspace& workspace) {
  TROUPE_CHECK(layers_.first == 0 && layers_.end == config_.layers);
  std::vector<RowGroup> prompts, answers;
  placed_.clear();
  std::uint32_t placed = 0;
  for (const RowGroup& group : batch) {
    RowGroup answer = group;
    if (group.cache->length() == 0) {
      TROUPE_ASSIGN_OR_RETURN(const std::size_t rows, EncoderRows(group, workspace));
      RowGroup& prompt = prompts.emplace_back(group);
      prompt.tokens = group.tokens.first(rows);
      prompt.phase = Phase::kPrompt;
      prompt.guessed = 0;
      answer.tokens = group.tokens.subspan(rows);
      placed_.resize(placed_.size() + rows, kNotPlaced);
    }
    for (std::size_t i = 0; i < answer.tokens.size(); ++i) placed_.push_back(placed++);
    answers.push_back(answer);
  }
  FillPositionBiases(workspace);
  Status run = prompts.empty() ? OkStatus() : Encode(prompts, workspace);
  if (run.ok()) run = Decode(answers, workspace);
  TellRowsDone(0);
  if (!run.ok()) {
    for (const RowGroup& prompt : prompts) prompt.cache->Truncate(0);
  }
  return run;
}

}  // namespace troupe
