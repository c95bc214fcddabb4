// MiniMax-M2: queries and keys are normalised over their whole width, a part of each head rotates,
// experts are chosen by sigmoids plus a bias and their weights sum to one.
#include "model/arch/keys.h"

namespace troupe {

Result<ModelConfig> ReadMinimaxM2Config(const Metadata& metadata) {
  const ArchKeys keys(metadata, "minimax-m2");
  TROUPE_ASSIGN_OR_RETURN(ModelConfig config,
                          ReadCommonConfig(keys, Architecture::kMinimaxM2, RopePairs::kHalves));
  MoeConfig& moe = config.moe;
  if (moe.routing.experts == 0) return InvalidArgument("{} is missing", keys.Full("expert_count"));
  TROUPE_RETURN_IF_ERROR(ReadExpertSizes(keys, config.dense_ff, moe));
  TROUPE_ASSIGN_OR_RETURN(moe.routing.score, ReadGateScore(keys, GateScore::kSigmoid));
  moe.routing.normalise = true;
  moe.selection_bias = Presence::kRequired;
  config.attention.qk_norm = QkNorm::kWhole;
  return config;
}

}  // namespace troupe
