#include "model/arch/keys.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "base/printable.h"

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

Result<std::vector<std::uint32_t>> ArchKeys::PerLayerOr(std::string_view key,
                                                        std::uint32_t otherwise,
                                                        std::uint32_t layers, std::uint32_t least,
                                                        std::uint32_t most) const {
  const Value* const value = metadata_.Find(Full(key));
  if (value == nullptr || !std::holds_alternative<Array>(*value)) {
    TROUPE_ASSIGN_OR_RETURN(const std::uint32_t one, CountOr(key, otherwise, least, most));
    return std::vector<std::uint32_t>(layers, one);
  }
  TROUPE_ASSIGN_OR_RETURN(const std::vector<std::int64_t> array, metadata_.GetInts(Full(key)));
  if (array.size() < layers) {
    return metadata_.BadValue(Full(key), fmt::format("one for each of {} layers", layers));
  }
  std::vector<std::uint32_t> each;
  for (std::uint32_t layer = 0; layer < layers; ++layer) {
    TROUPE_ASSIGN_OR_RETURN(
        const std::uint32_t one,
        InRange(key, static_cast<std::uint64_t>(std::max<std::int64_t>(array[layer], 0)), least,
                most));
    each.push_back(one);
  }
  return each;
}

Result<float> ArchKeys::NumberOr(std::string_view key, float otherwise) const {
  TROUPE_ASSIGN_OR_RETURN(const double value, metadata_.GetFloatOr(Full(key), otherwise));
  if (!std::isfinite(value)) {
    return InvalidArgument("{} is {}, expected a finite number", Full(key), value);
  }
  return static_cast<float>(value);
}

Result<float> ArchKeys::PositiveNumberOr(std::string_view key, float otherwise, float most) const {
  TROUPE_ASSIGN_OR_RETURN(const float value, NumberOr(key, otherwise));
  if (!(value > 0 && value <= most)) {
    return InvalidArgument("{} is {}, expected a number above 0 and at most {}", Full(key), value,
                           most);
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

Status ReadKeyHeads(const ArchKeys& keys, KeyHeads key_heads, ModelConfig& config) {
  AttentionConfig& attention = config.attention;
  const std::string_view key = "attention.head_count_kv";
  TROUPE_ASSIGN_OR_RETURN(const std::vector<std::uint32_t> each,
                          keys.PerLayerOr(key, attention.heads, config.layers,
                                          key_heads == KeyHeads::kAlike ? 1 : 0, attention.heads));
  const auto [least, most] = std::ranges::minmax(each);
  if (key_heads == KeyHeads::kAlike && least != most) {
    return keys.metadata().BadValue(keys.Full(key), "the same number for all layers");
  }
  attention.kv_heads = most;
  if (most == 0 || attention.heads % most != 0) {
    return InvalidArgument("{} is {}, expected a divisor of the {} heads", keys.Full(key), most,
                           attention.heads);
  }
  return OkStatus();
}

Status ReadAttention(const ArchKeys& keys, KeyHeads key_heads, ModelConfig& config) {
  AttentionConfig& attention = config.attention;
  TROUPE_ASSIGN_OR_RETURN(attention.heads, keys.Count("attention.head_count", 1, kMaxHeads));
  TROUPE_RETURN_IF_ERROR(ReadKeyHeads(keys, key_heads, config));
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
                                     RopePairs pairs, KeyHeads key_heads) {
  ModelConfig config;
  config.architecture = architecture;
  TROUPE_ASSIGN_OR_RETURN(const std::string_view name,
                          keys.metadata().GetStringOr("general.name", ""));
  config.name = Printable(name);
  TROUPE_ASSIGN_OR_RETURN(config.layers, keys.Count("block_count", 1, kMaxLayers));
  TROUPE_ASSIGN_OR_RETURN(config.width, keys.Count("embedding_length", 1, kMaxWidth));
  TROUPE_ASSIGN_OR_RETURN(config.trained_context, keys.Count("context_length", 1, kMaxContext));
  // Nothing that answers need: whatever it says, the model can be read.
  const Result<std::uint32_t> pooling = keys.CountOr("pooling_type", 0, 0, 4);
  config.pooling = pooling.ok() ? *pooling : 0;
  if (key_heads == KeyHeads::kAlike) {
    TROUPE_ASSIGN_OR_RETURN(config.dense_ff, keys.CountOr("feed_forward_length", 0, 0, kMaxWidth));
  } else {
    TROUPE_ASSIGN_OR_RETURN(const std::vector<std::uint32_t> each,
                            keys.PerLayerOr("feed_forward_length", 0, config.layers, 0, kMaxWidth));
    config.dense_ff = std::ranges::max(each);
  }
  TROUPE_ASSIGN_OR_RETURN(config.norm_epsilon,
                          keys.PositiveNumberOr("attention.layer_norm_rms_epsilon", 1e-5f, 1.0f));
  const auto tokens = keys.metadata().GetStrings("tokenizer.ggml.tokens");
  if (tokens.ok()) {
    config.vocabulary = static_cast<std::uint32_t>((*tokens)->size());
  } else if (tokens.status().code() == Code::kNotFound) {
    const Result<std::uint32_t> size = keys.Count("vocab_size", 1, 1u << 24);
    if (!size.ok() && size.status().code() == Code::kNotFound) {
      return InvalidArgument("{}: no tokenizer in the file: neither tokenizer.ggml.tokens nor {}",
                             keys.metadata().origin(), keys.Full("vocab_size"));
    }
    TROUPE_ASSIGN_OR_RETURN(config.vocabulary, size);
  } else {
    return tokens.status();
  }
  config.rope.pairs = pairs;
  TROUPE_RETURN_IF_ERROR(ReadAttention(keys, key_heads, config));
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

Result<std::vector<bool>> ReadLayersWithoutKeys(const ArchKeys& keys, const ModelConfig& config) {
  const std::string_view key = "attention.head_count_kv";
  TROUPE_ASSIGN_OR_RETURN(
      const std::vector<std::uint32_t> each,
      keys.PerLayerOr(key, config.attention.heads, config.layers, 0, config.attention.heads));
  if (std::ranges::count(each, 0u) == 0) return std::vector<bool>();
  std::vector<bool> without;
  for (const std::uint32_t heads : each) {
    if (heads != 0 && heads != config.attention.kv_heads) {
      return keys.metadata().BadValue(keys.Full(key), "0, or the same number, in each layer");
    }
    without.push_back(heads == 0);
  }
  return without;
}

Status ReadExpertScale(const ArchKeys& keys, MoeConfig& moe) {
  TROUPE_ASSIGN_OR_RETURN(moe.routing.scale, keys.NumberOr("expert_weights_scale", 1.0f));
  if (moe.routing.scale == 0.0f) moe.routing.scale = 1.0f;  // converters write 0 for "not scaled"
  return OkStatus();
}

Result<GateScore> ReadGateScore(const ArchKeys& keys, GateScore otherwise) {
  // 0: files that precede the key; 1 softmax; 2 sigmoid.
  TROUPE_ASSIGN_OR_RETURN(const std::uint32_t gating, keys.CountOr("expert_gating_func", 0, 0, 2));
  if (gating == 0) return otherwise;
  return gating == 2 ? GateScore::kSigmoid : GateScore::kSoftmax;
}

Status ReadRouting(const ArchKeys& keys, GateScore otherwise, MoeConfig& moe) {
  TopExpertsParams& routing = moe.routing;
  TROUPE_RETURN_IF_ERROR(ReadExpertScale(keys, moe));
  TROUPE_ASSIGN_OR_RETURN(routing.normalise, keys.FlagOr("expert_weights_norm", false));
  TROUPE_ASSIGN_OR_RETURN(routing.score, ReadGateScore(keys, otherwise));
  // DeepSeek-V3 ranks a group by its two best experts, V2 by its best, as their authors publish
  // them; llama.cpp ranks by two for both.
  routing.group_rank = routing.score == GateScore::kSigmoid ? GroupRank::kTopTwo : GroupRank::kMax;
  TROUPE_ASSIGN_OR_RETURN(routing.groups,
                          keys.CountOr("expert_group_count", 1, 0, routing.experts));
  if (routing.groups == 0) routing.groups = 1;
  TROUPE_ASSIGN_OR_RETURN(routing.groups_used, keys.CountOr("expert_group_used_count",
                                                            routing.groups, 0, routing.groups));
  if (routing.groups_used == 0) routing.groups_used = routing.groups;
  if (routing.experts % routing.groups != 0) {
    return InvalidArgument("{} is {}, expected a divisor of the {} experts",
                           keys.Full("expert_group_count"), routing.groups, routing.experts);
  }
  const std::uint32_t remaining = routing.experts / routing.groups * routing.groups_used;
  if (remaining < routing.top_k) {
    return InvalidArgument("{} is {}: {} experts remain to choose {} from",
                           keys.Full("expert_group_used_count"), routing.groups_used, remaining,
                           routing.top_k);
  }
  return OkStatus();
}

Status ReadDenseAndShared(const ArchKeys& keys, ModelConfig& config) {
  MoeConfig& moe = config.moe;
  TROUPE_ASSIGN_OR_RETURN(moe.leading_dense,
                          keys.CountOr("leading_dense_block_count", 0, 0, config.layers));
  if (moe.leading_dense > 0 && config.dense_ff == 0) {
    return InvalidArgument("{} is missing", keys.Full("feed_forward_length"));
  }
  TROUPE_ASSIGN_OR_RETURN(const std::uint32_t shared,
                          keys.CountOr("expert_shared_count", 0, 0, 64));
  moe.shared_ff = shared * moe.expert_ff;
  return OkStatus();
}

Status ReadNextTokenLayers(const ArchKeys& keys, ModelConfig& config) {
  TROUPE_ASSIGN_OR_RETURN(config.next_token_layers,
                          keys.CountOr("nextn_predict_layers", 0, 0, config.layers - 1));
  config.layers -= config.next_token_layers;
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
