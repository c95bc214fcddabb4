// Qwen3-Next (Qwen3-Coder-Next): three of four layers have a gated delta net, the others gated
// attention with partial rotation; a shared expert with a gate of its own.
#include <cmath>
#include <variant>

#include "kernels/delta_net.h"
#include "model/arch/keys.h"

namespace troupe {
namespace {

// A flag a layer, or every n-th layer has attention.
Result<std::vector<bool>> ReadRecurrentLayers(const ArchKeys& keys, std::uint32_t layers) {
  const std::string name = keys.Full("attention.recurrent_layers");
  if (const Value* value = keys.metadata().Find(name); value != nullptr) {
    const auto* const array = std::get_if<Array>(value);
    const auto* const flags = array ? std::get_if<std::vector<bool>>(&array->elements) : nullptr;
    if (flags == nullptr || flags->size() < layers) {
      return keys.metadata().BadValue(name, fmt::format("an array of {} flags", layers));
    }
    return std::vector<bool>(flags->begin(), flags->begin() + layers);
  }
  TROUPE_ASSIGN_OR_RETURN(const std::uint32_t interval,
                          keys.CountOr("full_attention_interval", 4, 1, kMaxLayers));
  std::vector<bool> recurrent(layers);
  for (std::uint32_t layer = 0; layer < layers; ++layer) {
    recurrent[layer] = (layer + 1) % interval != 0;
  }
  return recurrent;
}

}  // namespace

Status ReadDeltaNet(const ArchKeys& keys, ModelConfig& config) {
  DeltaNetConfig delta;
  TROUPE_ASSIGN_OR_RETURN(delta.taps, keys.Count("ssm.conv_kernel", 2, 16));
  TROUPE_ASSIGN_OR_RETURN(delta.head_dim, keys.Count("ssm.state_size", 1, kMostHeadDim));
  TROUPE_ASSIGN_OR_RETURN(delta.key_heads, keys.Count("ssm.group_count", 1, 1024));
  TROUPE_ASSIGN_OR_RETURN(delta.value_heads, keys.Count("ssm.time_step_rank", 1, 1024));
  TROUPE_ASSIGN_OR_RETURN(const std::uint32_t inner, keys.Count("ssm.inner_size", 1, kMaxWidth));
  static_assert(DeltaNetHead::kTile % DeltaNetHead::kChains == 0);
  if (delta.head_dim % DeltaNetHead::kTile != 0) {
    return InvalidArgument("{} is {}, expected a multiple of {}", keys.Full("ssm.state_size"),
                           delta.head_dim, DeltaNetHead::kTile);
  }
  if (delta.value_heads % delta.key_heads != 0) {
    return InvalidArgument("{} is {}, expected a multiple of the {} key heads",
                           keys.Full("ssm.time_step_rank"), delta.value_heads, delta.key_heads);
  }
  if (inner != delta.ValueRow()) {
    return InvalidArgument("{} is {}, expected {} heads of {}", keys.Full("ssm.inner_size"), inner,
                           delta.value_heads, delta.head_dim);
  }
  TROUPE_ASSIGN_OR_RETURN(config.recurrent, ReadRecurrentLayers(keys, config.layers));
  config.delta = delta;
  return OkStatus();
}

Status ReadQwen3NextExperts(const ArchKeys& keys, ModelConfig& config) {
  MoeConfig& moe = config.moe;
  if (moe.routing.experts == 0) return InvalidArgument("{} is missing", keys.Full("expert_count"));
  TROUPE_RETURN_IF_ERROR(ReadExpertSizes(keys, config.dense_ff / moe.routing.top_k, moe));
  TROUPE_ASSIGN_OR_RETURN(moe.shared_ff, keys.CountOr("expert_shared_feed_forward_length",
                                                      config.dense_ff, 0, kMaxWidth));
  if (moe.shared_ff == 0) {
    return InvalidArgument("{} is missing", keys.Full("expert_shared_feed_forward_length"));
  }
  moe.shared_gate = true;
  moe.routing.normalise = true;
  return OkStatus();
}

Result<ModelConfig> ReadQwen3NextConfig(const Metadata& metadata) {
  const ArchKeys keys(metadata, "qwen3next");
  TROUPE_ASSIGN_OR_RETURN(ModelConfig config,
                          ReadCommonConfig(keys, Architecture::kQwen3Next, RopePairs::kHalves));
  config.attention.qk_norm = QkNorm::kPerHead;
  config.attention.gated = true;
  config.ffn_norm = "post_attention_norm";
  TROUPE_RETURN_IF_ERROR(ReadDeltaNet(keys, config));
  config.delta->fused_gates = true;
  TROUPE_RETURN_IF_ERROR(ReadQwen3NextExperts(keys, config));
  return config;
}

}  // namespace troupe
