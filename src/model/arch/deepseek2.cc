// DeepSeek-V2 and V3, and GLM-4.7-Flash, whose files say deepseek2: multi-head latent attention,
// leading dense layers, shared experts, routing limited to groups of experts, and YaRN with a
// correction of its own.
#include <cmath>

#include "model/arch/keys.h"

namespace troupe {
namespace {

Status ReadMla(const ArchKeys& keys, ModelConfig& config) {
  AttentionConfig& attention = config.attention;
  MlaConfig mla;
  TROUPE_ASSIGN_OR_RETURN(mla.q_rank, keys.CountOr("attention.q_lora_rank", 0, 0, kMaxWidth));
  TROUPE_ASSIGN_OR_RETURN(mla.kv_rank, keys.Count("attention.kv_lora_rank", 1, kMaxHeadDim));
  // Files made before the absorbed form was common give the decompressed sizes in the plain keys.
  TROUPE_ASSIGN_OR_RETURN(
      const std::uint32_t key_dim,
      keys.CountOr("attention.key_length_mla", attention.key_dim, 1, kMaxHeadDim));
  TROUPE_ASSIGN_OR_RETURN(mla.value_dim, keys.CountOr("attention.value_length_mla",
                                                      attention.value_dim, 1, kMaxHeadDim));
  mla.rope_dim = config.rope.dims;
  if (key_dim <= mla.rope_dim) {
    return InvalidArgument("{} is {}, expected more than the {} rotary dimensions",
                           keys.Full("attention.key_length_mla"), key_dim, mla.rope_dim);
  }
  mla.nope_dim = key_dim - mla.rope_dim;

  // Two corrections of YaRN: where the file has a multiplier, cosine and sine keep their magnitude,
  // and the attention scale grows by its square. Converters store a tenth of the multiplier.
  TROUPE_ASSIGN_OR_RETURN(const float tenth,
                          keys.NumberOr("rope.scaling.yarn_log_multiplier", 0.0f));
  float magnitude = 1.0f;
  if (config.rope.ext_factor != 0.0f) {
    const float factor = 1.0f / config.rope.freq_scale;
    if (tenth != 0.0f) config.rope.attn_factor /= YarnMagnitude(factor);
    magnitude = config.rope.attn_factor * YarnMagnitude(factor) * (1.0f + tenth * std::log(factor));
  }
  attention.scale = magnitude * magnitude / std::sqrt(static_cast<float>(key_dim));

  attention.kv_heads = 1;
  attention.key_dim = mla.kv_rank + mla.rope_dim;
  attention.value_dim = mla.kv_rank;
  attention.mla = mla;
  return OkStatus();
}

// The first files of GLM-4.7-Flash lack the key that says how its gate scores, as those of V2 do;
// it is known by its sizes (llama.cpp, pull request 18980). 48 layers: with the head that predicts
// a further token.
bool IsGlmFlash(const ModelConfig& config) {
  return (config.layers == 47 || config.layers == 48) && config.vocabulary == 154880;
}

}  // namespace

Result<ModelConfig> ReadDeepseek2Config(const Metadata& metadata) {
  const ArchKeys keys(metadata, "deepseek2");
  TROUPE_ASSIGN_OR_RETURN(ModelConfig config,
                          ReadCommonConfig(keys, Architecture::kDeepseek2, RopePairs::kAdjacent));
  TROUPE_RETURN_IF_ERROR(ReadMla(keys, config));
  MoeConfig& moe = config.moe;
  if (moe.routing.experts == 0) return InvalidArgument("{} is missing", keys.Full("expert_count"));
  TROUPE_RETURN_IF_ERROR(ReadExpertSizes(keys, 0, moe));
  TROUPE_RETURN_IF_ERROR(ReadDenseAndShared(keys, config));
  TROUPE_RETURN_IF_ERROR(
      ReadRouting(keys, IsGlmFlash(config) ? GateScore::kSigmoid : GateScore::kSoftmax, moe));
  moe.selection_bias = Presence::kOptional;  // V3 has one, V2 none
  return config;
}

}  // namespace troupe
