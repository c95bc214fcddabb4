#include "model/arch/keys.h"

#include <algorithm>
#include <cmath>

namespace troupe {

Result<std::uint32_t> ArchKeys::InRange(std::string_view key, std::uint64_t value,
                                        std::uint32_t least, std::uint32_t most) const {
  if (value < least || value > most) {
    return InvalidArgument("{} is {}, expected {} to {}", Full(key), value, least, most);
  }
  return static_cast<std::uint32_t>(value);
}

Result<std::uint32_t> ArchKeys::Count(std::string_view key, std::uint32_t least,
                                      std::uint32_t most) const {
  TROUPE_ASSIGN_OR_RETURN(const std::uint64_t value, metadata_.GetUint(Full(key)));
  return InRange(key, value, least, most);
}

Result<std::uint32_t> ArchKeys::CountOr(std::string_view key, std::uint32_t otherwise,
                                        std::uint32_t least, std::uint32_t most) const {
  TROUPE_ASSIGN_OR_RETURN(const std::uint64_t value, metadata_.GetUintOr(Full(key), otherwise));
  return InRange(key, value, least, most);
}

Result<float> ArchKeys::NumberOr(std::string_view key, float otherwise) const {
  TROUPE_ASSIGN_OR_RETURN(const double value, metadata_.GetFloatOr(Full(key), otherwise));
  if (!std::isfinite(value)) {
    return InvalidArgument("{} is {}, expected a finite number", Full(key), value);
  }
  return static_cast<float>(value);
}

Result<float> ArchKeys::PositiveNumberOr(std::string_view key, float otherwise) const {
  TROUPE_ASSIGN_OR_RETURN(const float value, NumberOr(key, otherwise));
  if (!(value > 0)) {
    return InvalidArgument("{} is {}, expected a number above 0", Full(key), value);
  }
  return value;
}

Result<bool> ArchKeys::FlagOr(std::string_view key, bool otherwise) const {
  return metadata_.GetBoolOr(Full(key), otherwise);
}

Result<std::string_view> ArchKeys::TextOr(std::string_view key, std::string_view otherwise) const {
  return metadata_.GetStringOr(Full(key), otherwise);
}

float YarnMagnitude(float factor) { return factor <= 1.0f ? 1.0f : 1.0f + 0.1f * std::log(factor); }

namespace {

Status ReadRope(const ArchKeys& keys, ModelConfig& config) {
  RopeParams& rope = config.rope;
  TROUPE_ASSIGN_OR_RETURN(rope.freq_base, keys.PositiveNumberOr("rope.freq_base", 10000.0f));
  TROUPE_ASSIGN_OR_RETURN(const float legacy_factor,
                          keys.PositiveNumberOr("rope.scale_linear", 1.0f));
  TROUPE_ASSIGN_OR_RETURN(const float factor,
                          keys.PositiveNumberOr("rope.scaling.factor", legacy_factor));
  TROUPE_ASSIGN_OR_RETURN(const std::string_view scaling,
                          keys.TextOr("rope.scaling.type", "linear"));
  if (scaling != "none" && scaling != "linear" && scaling != "yarn") {
    return Error(Code::kUnimplemented, "{} is '{}', expected none, linear or yarn",
                 keys.Full("rope.scaling.type"), scaling);
  }
  if (scaling != "none") rope.freq_scale = 1.0f / factor;
  if (scaling == "yarn") rope.ext_factor = 1.0f;
  TROUPE_ASSIGN_OR_RETURN(
      rope.original_context,
      keys.CountOr("rope.scaling.original_context_length", config.trained_context, 1, kMaxContext));
  TROUPE_ASSIGN_OR_RETURN(rope.beta_fast,
                          keys.PositiveNumberOr("rope.scaling.yarn_beta_fast", rope.beta_fast));
  TROUPE_ASSIGN_OR_RETURN(rope.beta_slow,
                          keys.PositiveNumberOr("rope.scaling.yarn_beta_slow", rope.beta_slow));
  TROUPE_ASSIGN_OR_RETURN(rope.attn_factor,
                          keys.PositiveNumberOr("rope.scaling.attn_factor", 1.0f));
  return OkStatus();
}

Status ReadAttention(const ArchKeys& keys, ModelConfig& config) {
  AttentionConfig& attention = config.attention;
  TROUPE_ASSIGN_OR_RETURN(attention.heads, keys.Count("attention.head_count", 1, kMaxHeads));
  TROUPE_ASSIGN_OR_RETURN(attention.kv_heads, keys.CountOr("attention.head_count_kv",
                                                           attention.heads, 1, attention.heads));
  if (attention.heads % attention.kv_heads != 0) {
    return InvalidArgument("{} is {}, expected a divisor of the {} heads",
                           keys.Full("attention.head_count_kv"), attention.kv_heads,
                           attention.heads);
  }
  const std::uint32_t head_dim = config.width / attention.heads;
  TROUPE_ASSIGN_OR_RETURN(attention.key_dim,
                          keys.CountOr("attention.key_length", head_dim, 1, kMaxHeadDim));
  TROUPE_ASSIGN_OR_RETURN(attention.value_dim,
                          keys.CountOr("attention.value_length", head_dim, 1, kMaxHeadDim));
  TROUPE_ASSIGN_OR_RETURN(
      attention.scale,
      keys.PositiveNumberOr("attention.scale",
                            1.0f / std::sqrt(static_cast<float>(attention.key_dim))));
  TROUPE_ASSIGN_OR_RETURN(config.rope.dims,
                          keys.CountOr("rope.dimension_count", attention.key_dim, 2, kMaxHeadDim));
  if (config.rope.dims > attention.key_dim) {
    return InvalidArgument("{} is {}, expected at most the {} of a head",
                           keys.Full("rope.dimension_count"), config.rope.dims, attention.key_dim);
  }
  if (config.rope.dims % 2 != 0) {
    return InvalidArgument("{} is {}, expected an even number", keys.Full("rope.dimension_count"),
                           config.rope.dims);
  }
  return OkStatus();
}

}  // namespace

Result<ModelConfig> ReadCommonConfig(const ArchKeys& keys, Architecture architecture,
                                     RopePairs pairs) {
  ModelConfig config;
  config.architecture = architecture;
  TROUPE_ASSIGN_OR_RETURN(const std::string_view name,
                          keys.metadata().GetStringOr("general.name", ""));
  config.name = std::string(name);
  TROUPE_ASSIGN_OR_RETURN(config.layers, keys.Count("block_count", 1, kMaxLayers));
  TROUPE_ASSIGN_OR_RETURN(config.width, keys.Count("embedding_length", 1, kMaxWidth));
  TROUPE_ASSIGN_OR_RETURN(config.trained_context, keys.Count("context_length", 1, kMaxContext));
  // Nothing that answers need: whatever it says, the model can be read.
  const Result<std::uint32_t> pooling = keys.CountOr("pooling_type", 0, 0, 4);
  config.pooling = pooling.ok() ? *pooling : 0;
  TROUPE_ASSIGN_OR_RETURN(config.dense_ff, keys.CountOr("feed_forward_length", 0, 0, kMaxWidth));
  TROUPE_ASSIGN_OR_RETURN(config.norm_epsilon,
                          keys.PositiveNumberOr("attention.layer_norm_rms_epsilon", 1e-5f));
  const auto tokens = keys.metadata().GetStrings("tokenizer.ggml.tokens");
  if (tokens.ok()) {
    config.vocabulary = static_cast<std::uint32_t>((*tokens)->size());
  } else if (tokens.status().code() == Code::kNotFound) {
    TROUPE_ASSIGN_OR_RETURN(config.vocabulary, keys.Count("vocab_size", 1, 1u << 24));
  } else {
    return tokens.status();
  }
  config.rope.pairs = pairs;
  TROUPE_RETURN_IF_ERROR(ReadAttention(keys, config));
  TROUPE_RETURN_IF_ERROR(ReadRope(keys, config));

  MoeConfig& moe = config.moe;
  TROUPE_ASSIGN_OR_RETURN(moe.routing.experts, keys.CountOr("expert_count", 0, 0, kMaxExperts));
  if (moe.routing.experts > 0) {
    TROUPE_ASSIGN_OR_RETURN(
        moe.routing.top_k,
        keys.Count("expert_used_count", 1, std::min(moe.routing.experts, kMaxExpertsPerToken)));
  }
  return config;
}

Status ReadExpertScale(const ArchKeys& keys, MoeConfig& moe) {
  TROUPE_ASSIGN_OR_RETURN(moe.routing.scale, keys.NumberOr("expert_weights_scale", 1.0f));
  if (moe.routing.scale == 0.0f) moe.routing.scale = 1.0f;  // converters write 0 for "not scaled"
  return OkStatus();
}

Status ReadExpertSizes(const ArchKeys& keys, std::uint32_t default_expert_ff, MoeConfig& moe) {
  TROUPE_ASSIGN_OR_RETURN(
      moe.expert_ff, keys.CountOr("expert_feed_forward_length", default_expert_ff, 0, kMaxWidth));
  if (moe.expert_ff == 0) {
    return InvalidArgument("{} is missing, and the file has no other key to tell an expert's width",
                           keys.Full("expert_feed_forward_length"));
  }
  return OkStatus();
}

}  // namespace troupe
