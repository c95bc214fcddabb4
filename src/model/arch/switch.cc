// Switch Transformers: T5 with experts. The first layers are an encoder's; each token has one
// expert, whose answer is weighed by its share of a softmax over all; experts are relu between two
// matrices; attention is not scaled, and positions are a bias by distance. docs/formats/switch.md
// has the file, which tools/convert/switch.py makes.
#include <algorithm>
#include <variant>

#include "model/arch/keys.h"

namespace troupe {
namespace {

constexpr std::uint32_t kMostBuckets = 1u << 16;

Result<EncoderConfig> ReadEncoder(const ArchKeys& keys, const ModelConfig& config) {
  EncoderConfig encoder;
  if (config.layers < 2) {
    return InvalidArgument("{} is {}, expected at least 2: an encoder and a decoder",
                           keys.Full("block_count"), config.layers);
  }
  TROUPE_ASSIGN_OR_RETURN(encoder.layers, keys.Count("encoder_block_count", 1, config.layers - 1));
  TROUPE_ASSIGN_OR_RETURN(
      const std::uint32_t start,
      keys.Count("decoder_start_token_id", 0, std::max(config.vocabulary, 1u) - 1));
  encoder.decoder_start = static_cast<std::int32_t>(start);
  TROUPE_ASSIGN_OR_RETURN(encoder.buckets,
                          keys.Count("attention.relative_buckets_count", 4, kMostBuckets));
  TROUPE_ASSIGN_OR_RETURN(encoder.max_distance, keys.CountOr("attention.relative_max_distance", 128,
                                                             encoder.buckets / 2 + 1, kMaxContext));
  TROUPE_ASSIGN_OR_RETURN(encoder.expert_capacity,
                          keys.CountOr("expert_capacity", 0, 0, kMaxContext));
  return encoder;
}

// Which layers have experts; without the key all have.
Status ReadExpertLayers(const ArchKeys& keys, ModelConfig& config) {
  const std::string name = keys.Full("expert_layers");
  const Value* const value = keys.metadata().Find(name);
  if (value == nullptr) return OkStatus();
  const auto* const array = std::get_if<Array>(value);
  const auto* const flags = array ? std::get_if<std::vector<bool>>(&array->elements) : nullptr;
  if (flags == nullptr || flags->size() != config.layers || std::ranges::count(*flags, true) == 0) {
    return keys.metadata().BadValue(
        name, fmt::format("an array of {} flags, one of them true", config.layers));
  }
  const auto first = std::ranges::find(*flags, true);
  config.moe.leading_dense = static_cast<std::uint32_t>(first - flags->begin());
  if (std::find(first, flags->end(), false) == flags->end()) return OkStatus();
  for (const bool has_experts : *flags) config.moe.dense_layers.push_back(!has_experts);
  return OkStatus();
}

}  // namespace

Result<ModelConfig> ReadSwitchConfig(const Metadata& metadata) {
  const ArchKeys keys(metadata, "switch");
  TROUPE_ASSIGN_OR_RETURN(ModelConfig config,
                          ReadCommonConfig(keys, Architecture::kSwitch, RopePairs::kHalves));
  config.rope.dims = 0;
  config.attention.scale = 1.0f;
  config.form = GateForm::kRelu;
  TROUPE_ASSIGN_OR_RETURN(config.encoder, ReadEncoder(keys, config));
  TROUPE_ASSIGN_OR_RETURN(config.logit_scale, keys.PositiveNumberOr("logit_scale", 1.0f));
  MoeConfig& moe = config.moe;
  if (moe.routing.experts == 0) return InvalidArgument("{} is missing", keys.Full("expert_count"));
  if (moe.routing.top_k != 1) {
    return InvalidArgument("{} is {}, expected 1", keys.Full("expert_used_count"),
                           moe.routing.top_k);
  }
  TROUPE_RETURN_IF_ERROR(ReadExpertSizes(keys, config.dense_ff, moe));
  TROUPE_RETURN_IF_ERROR(ReadExpertLayers(keys, config));
  const bool has_dense = moe.leading_dense > 0 || !moe.dense_layers.empty();
  if (has_dense && config.dense_ff == 0) {
    return InvalidArgument("{} is missing", keys.Full("feed_forward_length"));
  }
  return config;
}

}  // namespace troupe
