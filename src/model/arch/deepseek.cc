// DeepSeekMoE (the first): Llama's attention, leading dense layers, shared experts without a gate.
#include "model/arch/keys.h"

namespace troupe {

Result<ModelConfig> ReadDeepseekConfig(const Metadata& metadata) {
  const ArchKeys keys(metadata, "deepseek");
  TROUPE_ASSIGN_OR_RETURN(ModelConfig config,
                          ReadCommonConfig(keys, Architecture::kDeepseek, RopePairs::kAdjacent));
  MoeConfig& moe = config.moe;
  if (moe.routing.experts == 0) return InvalidArgument("{} is missing", keys.Full("expert_count"));
  TROUPE_RETURN_IF_ERROR(ReadExpertSizes(keys, 0, moe));
  TROUPE_ASSIGN_OR_RETURN(moe.leading_dense,
                          keys.CountOr("leading_dense_block_count", 0, 0, config.layers));
  TROUPE_ASSIGN_OR_RETURN(const std::uint32_t shared,
                          keys.CountOr("expert_shared_count", 0, 0, 64));
  moe.shared_ff = shared * moe.expert_ff;
  TROUPE_RETURN_IF_ERROR(ReadExpertScale(keys, moe));
  return config;
}

}  // namespace troupe
