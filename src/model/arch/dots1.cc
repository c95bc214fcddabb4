// dots.llm1: DeepSeek's experts behind plain attention with normalised heads.
#include "model/arch/keys.h"

namespace troupe {

Result<ModelConfig> ReadDots1Config(const Metadata& metadata) {
  const ArchKeys keys(metadata, "dots1");
  TROUPE_ASSIGN_OR_RETURN(ModelConfig config,
                          ReadCommonConfig(keys, Architecture::kDots1, RopePairs::kHalves));
  MoeConfig& moe = config.moe;
  if (moe.routing.experts == 0) return InvalidArgument("{} is missing", keys.Full("expert_count"));
  TROUPE_RETURN_IF_ERROR(ReadExpertSizes(keys, 0, moe));
  TROUPE_RETURN_IF_ERROR(ReadDenseAndShared(keys, config));
  TROUPE_RETURN_IF_ERROR(ReadRouting(keys, GateScore::kSigmoid, moe));
  moe.selection_bias = Presence::kOptional;
  config.attention.qk_norm = QkNorm::kPerHead;
  return config;
}

}  // namespace troupe
