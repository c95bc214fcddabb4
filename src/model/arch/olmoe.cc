// OLMoE: queries and keys are normalised over their whole width, no shared expert, the chosen
// experts' weights are left as the softmax gave them.
#include "model/arch/keys.h"

namespace troupe {

Result<ModelConfig> ReadOlmoeConfig(const Metadata& metadata) {
  const ArchKeys keys(metadata, "olmoe");
  TROUPE_ASSIGN_OR_RETURN(ModelConfig config,
                          ReadCommonConfig(keys, Architecture::kOlmoe, RopePairs::kHalves));
  if (config.moe.routing.experts == 0)
    return InvalidArgument("{} is missing", keys.Full("expert_count"));
  TROUPE_RETURN_IF_ERROR(ReadExpertSizes(keys, config.dense_ff, config.moe));
  config.attention.qk_norm = QkNorm::kWhole;
  return config;
}

}  // namespace troupe
