// Granite 3 with experts, and with a shared expert (GraniteMoeShared): Mixtral's blocks, with
// scales on embeddings, scores, logits, and on what each block adds to the stream.
#include "model/arch/keys.h"

namespace troupe {

Status ReadGraniteScales(const ArchKeys& keys, ModelConfig& config) {
  // What the key is called has nothing to do with it: false are models that do not rotate.
  TROUPE_ASSIGN_OR_RETURN(const bool rotates, keys.FlagOr("rope.scaling.finetuned", true));
  if (!rotates) config.rope = {.pairs = config.rope.pairs, .dims = 0};
  TROUPE_ASSIGN_OR_RETURN(config.embedding_scale, keys.PositiveNumberOr("embedding_scale", 1.0f));
  TROUPE_ASSIGN_OR_RETURN(config.residual_scale, keys.PositiveNumberOr("residual_scale", 1.0f));
  TROUPE_ASSIGN_OR_RETURN(const float divisor, keys.PositiveNumberOr("logit_scale", 1.0f));
  config.logit_scale = 1.0f / divisor;
  return OkStatus();
}

Status ReadGraniteExperts(const ArchKeys& keys, ModelConfig& config) {
  MoeConfig& moe = config.moe;
  TROUPE_RETURN_IF_ERROR(ReadExpertSizes(keys, config.dense_ff, moe));
  TROUPE_ASSIGN_OR_RETURN(moe.shared_ff,
                          keys.CountOr("expert_shared_feed_forward_length", 0, 0, kMaxWidth));
  moe.routing.normalise = true;
  return OkStatus();
}

Result<ModelConfig> ReadGraniteMoeConfig(const Metadata& metadata) {
  const ArchKeys keys(metadata, "granitemoe");
  TROUPE_ASSIGN_OR_RETURN(ModelConfig config,
                          ReadCommonConfig(keys, Architecture::kGraniteMoe, RopePairs::kAdjacent));
  TROUPE_RETURN_IF_ERROR(ReadGraniteScales(keys, config));
  if (config.moe.routing.experts == 0) {
    return InvalidArgument("{} is missing", keys.Full("expert_count"));
  }
  TROUPE_RETURN_IF_ERROR(ReadGraniteExperts(keys, config));
  return config;
}

}  // namespace troupe
