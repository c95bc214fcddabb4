// LFM2-MoE: most layers mix tokens by a short convolution between two gates, the others by
// attention with normalised heads; experts are chosen by sigmoids plus a bias and their weights sum
// to one. A layer without key heads is one with a convolution.
#include <algorithm>

#include "model/arch/keys.h"

namespace troupe {

Result<ModelConfig> ReadLfm2MoeConfig(const Metadata& metadata) {
  const ArchKeys keys(metadata, "lfm2moe");
  TROUPE_ASSIGN_OR_RETURN(
      ModelConfig config,
      ReadCommonConfig(keys, Architecture::kLfm2Moe, RopePairs::kHalves, KeyHeads::kOfEachLayer));
  const std::string_view key_heads = "attention.head_count_kv";
  TROUPE_ASSIGN_OR_RETURN(
      const std::vector<std::uint32_t> each,
      keys.PerLayerOr(key_heads, config.attention.heads, config.layers, 0, config.attention.heads));
  if (std::ranges::count(each, 0u) > 0) {
    config.recurrent.assign(config.layers, false);
    TROUPE_ASSIGN_OR_RETURN(config.short_conv_taps, keys.Count("shortconv.l_cache", 2, 16));
  }
  for (std::uint32_t layer = 0; layer < config.layers; ++layer) {
    if (each[layer] == config.attention.kv_heads) continue;
    if (each[layer] != 0) {
      return metadata.BadValue(keys.Full(key_heads), "0, or the same number, in each layer");
    }
    config.recurrent[layer] = true;
  }

  MoeConfig& moe = config.moe;
  if (moe.routing.experts == 0) return InvalidArgument("{} is missing", keys.Full("expert_count"));
  TROUPE_RETURN_IF_ERROR(ReadExpertSizes(keys, 0, moe));
  TROUPE_RETURN_IF_ERROR(ReadDenseAndShared(keys, config));
  TROUPE_ASSIGN_OR_RETURN(moe.routing.score, ReadGateScore(keys, GateScore::kSigmoid));
  moe.routing.normalise = true;
  moe.selection_bias = Presence::kRequired;
  config.attention.qk_norm = QkNorm::kPerHead;
  config.output_norm = "token_embd_norm";
  return config;
}

}  // namespace troupe
