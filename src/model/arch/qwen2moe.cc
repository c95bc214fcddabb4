// Qwen1.5-MoE and Qwen2-MoE: a shared expert with a gate of its own; the chosen experts' weights
// are left as the softmax gave them. A layer that guesses a further token may follow the last one,
// which is an extension of this project (docs/formats/head.md).
#include "model/arch/keys.h"

namespace troupe {

Result<ModelConfig> ReadQwen2MoeConfig(const Metadata& metadata) {
  const ArchKeys keys(metadata, "qwen2moe");
  TROUPE_ASSIGN_OR_RETURN(ModelConfig config,
                          ReadCommonConfig(keys, Architecture::kQwen2Moe, RopePairs::kHalves));
  TROUPE_RETURN_IF_ERROR(ReadNextTokenLayers(keys, config));
  config.next_token_head = config.next_token_layers > 0;
  MoeConfig& moe = config.moe;
  if (moe.routing.experts == 0) return InvalidArgument("{} is missing", keys.Full("expert_count"));
  TROUPE_RETURN_IF_ERROR(ReadExpertSizes(keys, config.dense_ff / moe.routing.top_k, moe));
  TROUPE_ASSIGN_OR_RETURN(moe.shared_ff, keys.CountOr("expert_shared_feed_forward_length",
                                                      config.dense_ff, 1, kMaxWidth));
  moe.shared_gate = true;
  return config;
}

}  // namespace troupe
