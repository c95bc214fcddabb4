// ERNIE 4.5 with experts: chosen by a softmax plus a bias, beside a shared expert, behind leading
// dense layers.
#include "model/arch/keys.h"

namespace troupe {

Result<ModelConfig> ReadErnie45MoeConfig(const Metadata& metadata) {
  const ArchKeys keys(metadata, "ernie4_5-moe");
  TROUPE_ASSIGN_OR_RETURN(ModelConfig config,
                          ReadCommonConfig(keys, Architecture::kErnie45Moe, RopePairs::kAdjacent));
  MoeConfig& moe = config.moe;
  if (moe.routing.experts == 0) return InvalidArgument("{} is missing", keys.Full("expert_count"));
  TROUPE_RETURN_IF_ERROR(ReadExpertSizes(keys, 0, moe));
  TROUPE_RETURN_IF_ERROR(ReadDenseAndShared(keys, config));
  TROUPE_ASSIGN_OR_RETURN(moe.shared_ff,
                          keys.CountOr("expert_shared_feed_forward_length", 0, 0, kMaxWidth));
  // In models in which only every n-th layer has experts, n.
  TROUPE_RETURN_IF_ERROR(keys.CountOr("interleave_moe_layer_step", 1, 1, 1).status());
  moe.routing.normalise = true;
  moe.selection_bias = Presence::kOptional;
  return config;
}

}  // namespace troupe
