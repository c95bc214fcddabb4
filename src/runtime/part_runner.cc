#include "runtime/part_runner.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace troupe {
namespace {

// Pages are those of the engine's pool, as its workspace is made for them.
KvPoolShape PoolShapeOf(const PartShape& shape, KvType type, std::uint32_t context) {
  const std::size_t least = std::min<std::size_t>(Attention::kBlock, context);
  const std::size_t positions = std::max(shape.positions, least);
  if (positions < context) {
    return {.type = type, .context = static_cast<std::uint32_t>(positions), .sequences = 1};
  }
  return {.type = type,
          .context = context,
          .sequences = static_cast<std::uint32_t>(positions / context)};
}

}  // namespace

Status CheckCutLayer(const ModelConfig& config, std::uint32_t layer) {
  if (layer >= 1 && layer < config.layers) return OkStatus();
  return InvalidArgument("a cut before layer {}, 1 to {} expected: the model has {} layers", layer,
                         config.layers - 1, config.layers);
}

Status CheckPromptCut(const ModelConfig& config, std::uint32_t layer) {
  if (config.HasState()) {
    return Error(
        Code::kUnimplemented,
        "no prompts of a model are cut whose sequences have a state beside keys and values");
  }
  if (config.encoder) {
    return Error(Code::kUnimplemented,
                 "no prompts of an encoder-decoder are cut: its encoder reads each as a whole");
  }
  return CheckCutLayer(config, layer);
}

Bytes PartRunner::BytesFor(const ModelConfig& config, const PartShape& shape, KvType type,
                           std::uint32_t context) {
  if (shape.positions == 0 || shape.layers.size() == 0 || !config.KeysTellAll()) return Bytes();
  return KvPool::BytesFor(config, shape.layers, PoolShapeOf(shape, type, context)) +
         Bytes(config.vocabulary * sizeof(float));
}

Result<PartRunner> PartRunner::Create(Engine& engine, const PartShape& shape) {
  const EnginePlan& plan = engine.plan();
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<KvPool> pool,
                          KvPool::Create(engine.config(), shape.layers,
                                         PoolShapeOf(shape, plan.kv_type, plan.context())));
  TROUPE_CHECK(pool->page_positions() == engine.kv().page_positions());
  return PartRunner(engine, std::move(pool));
}

std::unique_ptr<PartRunner::Sequence> PartRunner::Open(std::size_t tokens) {
  auto sequence = std::make_unique<Sequence>(Sequence{.cache = pool_->NewSequence()});
  if (!sequence->cache.Reserve(tokens).ok()) return nullptr;
  sequence->request = engine_->NewRequest();
  return sequence;
}

void PartRunner::Close(std::unique_ptr<Sequence> sequence) {
  if (sequence != nullptr) (void)engine_->EndRequest(sequence->request);
}

Transformer& PartRunner::PartOf(LayerRange layers) {
  const bool is_rest = layers.end == engine_->config().layers;
  auto& parts = is_rest ? from_ : up_to_;
  const std::uint32_t key = is_rest ? layers.first : layers.end;
  const auto found = parts.find(key);
  if (found != parts.end()) return found->second;
  return parts.emplace(key, engine_->Part(layers)).first->second;
}

Status PartRunner::Run(LayerRange layers, std::span<const Rows> rows) {
  TROUPE_CHECK(layers.first == 0 || layers.end == engine_->config().layers);
  TROUPE_CHECK(layers.first >= pool_->layers().first && layers.end <= pool_->layers().end);
  groups_.clear();
  const auto first_id = static_cast<SequenceId>(engine_->plan().memory.sequences);
  for (const Rows& of : rows) {
    groups_.push_back({.cache = &of.sequence->cache,
                       .tokens = of.tokens,
                       .stream = of.stream,
                       .sequence = first_id + static_cast<SequenceId>(groups_.size()),
                       .request = of.sequence->request,
                       .phase = Phase::kPrompt,
                       .exact = true});
  }
  last_ = &PartOf(layers);
  const Status status = last_->Forward(groups_, engine_->workspace());
  engine_->SettleUsage();
  return status;
}

std::span<const float> PartRunner::Stream() const { return last_->Stream(engine_->workspace()); }

std::span<const float> PartRunner::Logits(std::uint32_t row) {
  logits_.resize(engine_->config().vocabulary);
  last_->Logits(engine_->workspace(), {&row, 1}, logits_.data());
  return logits_;
}

}  // namespace troupe
