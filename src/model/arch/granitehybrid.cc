// Granite 4.0-H: most layers are Mamba-2, the others have attention, in published models without
// rotation; Granite's scales; experts beside a shared one, or a dense feed-forward in the small
// models. A layer without key heads is one of Mamba-2.
#include "kernels/recurrent_head.h"
#include "model/arch/keys.h"

namespace troupe {

Result<StateSpaceConfig> ReadStateSpace(const ArchKeys& keys) {
  StateSpaceConfig space;
  TROUPE_ASSIGN_OR_RETURN(space.taps, keys.Count("ssm.conv_kernel", 2, 16));
  TROUPE_ASSIGN_OR_RETURN(space.key_dim, keys.Count("ssm.state_size", 1, kMostHeadDim));
  TROUPE_ASSIGN_OR_RETURN(space.groups, keys.Count("ssm.group_count", 1, 1024));
  TROUPE_ASSIGN_OR_RETURN(space.heads, keys.Count("ssm.time_step_rank", 1, 1024));
  TROUPE_ASSIGN_OR_RETURN(const std::uint32_t inner, keys.Count("ssm.inner_size", 1, kMaxWidth));
  if (space.key_dim % RecurrentHead::kChains != 0) {
    return InvalidArgument("{} is {}, expected a multiple of {}", keys.Full("ssm.state_size"),
                           space.key_dim, RecurrentHead::kChains);
  }
  if (space.heads % space.groups != 0) {
    return InvalidArgument("{} is {}, expected a multiple of the {} groups",
                           keys.Full("ssm.time_step_rank"), space.heads, space.groups);
  }
  space.head_dim = inner / space.heads;
  if (inner % space.heads != 0 || space.head_dim % RecurrentHead::kTile != 0 ||
      space.head_dim > kMostHeadDim) {
    return InvalidArgument("{} is {}, expected {} heads of a multiple of {} that is at most {}",
                           keys.Full("ssm.inner_size"), inner, space.heads, RecurrentHead::kTile,
                           kMostHeadDim);
  }
  return space;
}

Result<ModelConfig> ReadGraniteHybridConfig(const Metadata& metadata) {
  const ArchKeys keys(metadata, "granitehybrid");
  TROUPE_ASSIGN_OR_RETURN(ModelConfig config,
                          ReadCommonConfig(keys, Architecture::kGraniteHybrid, RopePairs::kAdjacent,
                                           KeyHeads::kOfEachLayer));
  TROUPE_RETURN_IF_ERROR(ReadGraniteScales(keys, config));
  TROUPE_ASSIGN_OR_RETURN(config.recurrent, ReadLayersWithoutKeys(keys, config));
  if (config.HasState()) {
    TROUPE_ASSIGN_OR_RETURN(config.space, ReadStateSpace(keys));
  }
  if (config.moe.routing.experts > 0) {
    TROUPE_RETURN_IF_ERROR(ReadGraniteExperts(keys, config));
  } else if (config.dense_ff == 0) {
    return InvalidArgument("{} is missing", keys.Full("feed_forward_length"));
  }
  return config;
}

}  // namespace troupe
