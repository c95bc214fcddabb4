// Qwen3-MoE: queries and keys are normalised head by head, no shared expert, the chosen experts'
// weights sum to one. Qwen3-VL-MoE is the same as a model of texts: pairs rotate by one of three
// positions, which are the same there. What an encoder makes of pictures is not read.
#include "model/arch/keys.h"

namespace troupe {
namespace {

Result<ModelConfig> ReadQwen3(const ArchKeys& keys, Architecture architecture) {
  TROUPE_ASSIGN_OR_RETURN(ModelConfig config,
                          ReadCommonConfig(keys, architecture, RopePairs::kHalves));
  MoeConfig& moe = config.moe;
  if (moe.routing.experts == 0) return InvalidArgument("{} is missing", keys.Full("expert_count"));
  TROUPE_RETURN_IF_ERROR(ReadExpertSizes(keys, config.dense_ff / moe.routing.top_k, moe));
  moe.routing.normalise = true;
  config.attention.qk_norm = QkNorm::kPerHead;
  return config;
}

}  // namespace

Result<ModelConfig> ReadQwen3MoeConfig(const Metadata& metadata) {
  return ReadQwen3(ArchKeys(metadata, "qwen3moe"), Architecture::kQwen3Moe);
}

Result<ModelConfig> ReadQwen3VlMoeConfig(const Metadata& metadata) {
  return ReadQwen3(ArchKeys(metadata, "qwen3vlmoe"), Architecture::kQwen3VlMoe);
}

}  // namespace troupe
