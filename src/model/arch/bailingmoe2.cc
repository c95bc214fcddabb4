// Ling 2 and Ring 2: DeepSeek's experts, in groups, behind attention whose queries, keys and values
// come of one matrix; heads are normalised and rotate in part. The layer behind the last one, which
// guesses a further token, is left out.
#include "model/arch/keys.h"

namespace troupe {

Result<ModelConfig> ReadBailingMoe2Config(const Metadata& metadata) {
  const ArchKeys keys(metadata, "bailingmoe2");
  TROUPE_ASSIGN_OR_RETURN(ModelConfig config,
                          ReadCommonConfig(keys, Architecture::kBailingMoe2, RopePairs::kHalves));
  TROUPE_RETURN_IF_ERROR(ReadNextTokenLayers(keys, config));
  MoeConfig& moe = config.moe;
  if (moe.routing.experts == 0) return InvalidArgument("{} is missing", keys.Full("expert_count"));
  TROUPE_RETURN_IF_ERROR(ReadExpertSizes(keys, 0, moe));
  TROUPE_RETURN_IF_ERROR(ReadDenseAndShared(keys, config));
  // Of one shared expert, where it is not as wide as a routed one.
  TROUPE_ASSIGN_OR_RETURN(const std::uint32_t shared_ff,
                          keys.CountOr("expert_shared_feed_forward_length", 0, 0, kMaxWidth));
  if (shared_ff > 0) moe.shared_ff = moe.shared_ff / moe.expert_ff * shared_ff;
  TROUPE_RETURN_IF_ERROR(ReadRouting(keys, GateScore::kSigmoid, moe));
  moe.selection_bias = Presence::kOptional;
  config.attention.qk_norm = QkNorm::kPerHead;
  config.attention.fused = true;
  return config;
}

}  // namespace troupe
