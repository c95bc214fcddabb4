// Qwen3-MoE: queries and keys are normalised head by head, no shared expert, the chosen experts'
// weights sum to one.
#include "model/arch/keys.h"

namespace troupe {

Result<ModelConfig> ReadQwen3MoeConfig(const Metadata& metadata) {
  const ArchKeys keys(metadata, "qwen3moe");
  TROUPE_ASSIGN_OR_RETURN(ModelConfig config,
                          ReadCommonConfig(keys, Architecture::kQwen3Moe, RopePairs::kHalves));
  MoeConfig& moe = config.moe;
  if (moe.routing.experts == 0) return InvalidArgument("{} is missing", keys.Full("expert_count"));
  TROUPE_RETURN_IF_ERROR(ReadExpertSizes(keys, config.dense_ff / moe.routing.top_k, moe));
  moe.routing.normalise = true;
  config.attention.qk_norm = QkNorm::kPerHead;
  return config;
}

}  // namespace troupe
