#include "lab/cut_model.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/rms_norm.h"

namespace troupe {

Bytes CutModel::BytesFor(const ModelConfig& config, std::size_t variants, std::size_t rows) {
  return Bytes((rows * config.width + variants * config.vocabulary) * sizeof(float));
}

Result<CutModel::Sequence> CutModel::Open(Engine& engine, std::size_t positions) {
  std::optional<SequenceSlots::Slot> slot = engine.sequence_slots().Take();
  if (!slot) {
    return Error(Code::kResourceExhausted, "{} sequences are open, and no more were planned for",
                 engine.sequence_slots().count());
  }
  Sequence sequence{.slot = std::move(*slot), .cache = engine.kv().NewSequence()};
  TROUPE_RETURN_IF_ERROR(sequence.cache.Reserve(positions));
  return sequence;
}

CutModel::CutModel(Engine& engine, std::uint32_t layer, std::size_t variants)
    : engine_(&engine),
      request_(engine.NewRequest()),
      lower_(engine.Part({0, layer})),
      upper_(engine.Part({layer, engine.config().layers})),
      most_rows_(engine.plan().memory.chunk / std::max<std::size_t>(1, variants)) {}

Result<CutModel> CutModel::Create(Engine& engine, std::uint32_t layer, std::size_t variants,
                                  std::size_t positions) {
  TROUPE_RETURN_IF_ERROR(CheckCutLayer(engine.config(), layer));
  CutModel model(engine, layer, variants);
  if (model.most_rows_ == 0) {
    return Error(Code::kResourceExhausted, "{} variants of a row, {} rows at most in a pass",
                 variants, engine.plan().memory.chunk);
  }
  TROUPE_ASSIGN_OR_RETURN(Sequence below, Open(engine, positions));
  model.below_.push_back(std::move(below));
  for (std::size_t i = 0; i < variants; ++i) {
    TROUPE_ASSIGN_OR_RETURN(Sequence above, Open(engine, positions));
    model.above_.push_back(std::move(above));
  }
  model.logits_.resize(variants * model.vocabulary());
  return model;
}

void CutModel::Restart() {
  below_.front().cache.Truncate(0);
  for (Sequence& sequence : above_) sequence.cache.Truncate(0);
}

Result<std::span<const float>> CutModel::RunBelow(TokenIds tokens) {
  TROUPE_CHECK(!tokens.empty() && tokens.size() <= most_rows_);
  const RowGroup group{.cache = &below_.front().cache,
                       .tokens = tokens,
                       .sequence = below_.front().slot.id(),
                       .request = request_,
                       .phase = Phase::kPrompt};
  TROUPE_RETURN_IF_ERROR(lower_.Forward({&group, 1}, engine_->workspace()));
  const std::span<const float> rows = lower_.Stream(engine_->workspace());
  crossing_.assign(rows.begin(), rows.end());  // the next pass takes the place of the stream
  rows_ = tokens.size();
  return std::span<const float>(crossing_);
}

Status CutModel::RunAbove(std::span<const std::span<const float>> rows) {
  TROUPE_CHECK(rows.size() == above_.size());
  std::vector<RowGroup> groups;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    TROUPE_CHECK(rows[i].size() == rows_ * width());
    groups.push_back({.cache = &above_[i].cache,
                      .tokens = {},
                      .stream = rows[i],
                      .sequence = above_[i].slot.id(),
                      .request = request_,
                      .phase = Phase::kPrompt});
  }
  return groups.empty() ? OkStatus() : upper_.Forward(groups, engine_->workspace());
}

std::span<const float> CutModel::Logits(std::size_t row) {
  TROUPE_CHECK(row < rows_);
  std::vector<std::uint32_t> of_each;
  for (std::size_t i = 0; i < above_.size(); ++i) {
    of_each.push_back(static_cast<std::uint32_t>(i * rows_ + row));
  }
  upper_.Logits(engine_->workspace(), of_each, logits_.data());
  return logits_;
}

std::vector<float> CutModel::Outputs() const {
  const std::span<const float> stream = upper_.Stream(engine_->workspace());
  std::vector<float> outputs(rows_ * width());
  for (std::size_t r = 0; r < rows_; ++r) {
    RmsNorm(stream.data() + r * width(), engine_->weights().output_norm,
            engine_->config().norm_epsilon, outputs.data() + r * width(), width());
  }
  return outputs;
}

}  // namespace troupe
