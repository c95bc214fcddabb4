// Llama, Mistral (dense) and Mixtral (experts): adjacent pairs rotate, optional biases, the chosen
// experts' weights sum to one.
#include "model/arch/keys.h"

namespace troupe {

Result<ModelConfig> ReadLlamaConfig(const Metadata& metadata) {
  const ArchKeys keys(metadata, "llama");
  TROUPE_ASSIGN_OR_RETURN(ModelConfig config,
                          ReadCommonConfig(keys, Architecture::kLlama, RopePairs::kAdjacent));
  if (config.dense_ff == 0) {
    return InvalidArgument("{} is missing", keys.Full("feed_forward_length"));
  }
  if (config.moe.routing.experts > 0) {
    TROUPE_RETURN_IF_ERROR(ReadExpertSizes(keys, config.dense_ff, config.moe));
    config.moe.routing.normalise = true;
  }
  return config;
}

}  // namespace troupe
