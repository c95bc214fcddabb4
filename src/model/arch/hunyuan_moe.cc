// Hunyuan-A13B: Mixtral's experts beside a shared one; queries and keys are normalised after they
// are rotated.
#include "model/arch/keys.h"

namespace troupe {

Result<ModelConfig> ReadHunyuanMoeConfig(const Metadata& metadata) {
  const ArchKeys keys(metadata, "hunyuan-moe");
  TROUPE_ASSIGN_OR_RETURN(ModelConfig config,
                          ReadCommonConfig(keys, Architecture::kHunyuanMoe, RopePairs::kHalves));
  MoeConfig& moe = config.moe;
  if (moe.routing.experts == 0) return InvalidArgument("{} is missing", keys.Full("expert_count"));
  TROUPE_RETURN_IF_ERROR(ReadExpertSizes(keys, config.dense_ff, moe));
  TROUPE_ASSIGN_OR_RETURN(moe.shared_ff, keys.CountOr("expert_shared_feed_forward_length",
                                                      config.dense_ff, 1, kMaxWidth));
  moe.routing.normalise = true;
  config.attention.qk_norm = QkNorm::kPerHeadRotated;
  return config;
}

}  // namespace troupe
