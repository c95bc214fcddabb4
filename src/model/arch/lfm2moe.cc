// LFM2-MoE: most layers mix tokens by a short convolution between two gates, the others by
// attention with normalised heads; experts are chosen by sigmoids plus a bias and their weights sum
// to one. A layer without key heads is one with a convolution.
#include "model/arch/keys.h"

namespace troupe {

Result<ModelConfig> ReadLfm2MoeConfig(const Metadata& metadata) {
  const ArchKeys keys(metadata, "lfm2moe");
  TROUPE_ASSIGN_OR_RETURN(
      ModelConfig config,
      ReadCommonConfig(keys, Architecture::kLfm2Moe, RopePairs::kHalves, KeyHeads::kOfEachLayer));
  TROUPE_ASSIGN_OR_RETURN(config.recurrent, ReadLayersWithoutKeys(keys, config));
  if (config.HasState()) {
    TROUPE_ASSIGN_OR_RETURN(config.short_conv_taps, keys.Count("shortconv.l_cache", 2, 16));
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
