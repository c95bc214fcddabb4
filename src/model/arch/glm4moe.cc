// GLM-4.5, 4.6 and 4.7: half of each head rotates, leading dense layers, a shared expert, experts
// chosen by sigmoids plus a bias. A layer that guesses a further token may follow the last one.
#include "model/arch/keys.h"

namespace troupe {
namespace {

// Of models that see pictures: a pair rotates by one of three positions, which are the same in a
// text; a pair beyond all three would not rotate.
Status CheckThreePositions(const ArchKeys& keys, std::uint32_t pairs) {
  const std::string name = keys.Full("rope.dimension_sections");
  if (keys.metadata().Find(name) == nullptr) return OkStatus();
  TROUPE_ASSIGN_OR_RETURN(const std::vector<std::int64_t> sections, keys.metadata().GetInts(name));
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < sections.size() && i < 3; ++i) sum += sections[i];
  if (sum == 0 || sum >= pairs) return OkStatus();
  return keys.metadata().BadValue(name, fmt::format("three sections of {} pairs in all", pairs));
}

}  // namespace

Result<ModelConfig> ReadGlm4MoeConfig(const Metadata& metadata) {
  const ArchKeys keys(metadata, "glm4moe");
  TROUPE_ASSIGN_OR_RETURN(ModelConfig config,
                          ReadCommonConfig(keys, Architecture::kGlm4Moe, RopePairs::kHalves));
  TROUPE_RETURN_IF_ERROR(CheckThreePositions(keys, config.rope.dims / 2));
  TROUPE_RETURN_IF_ERROR(ReadNextTokenLayers(keys, config));
  config.next_token_head = config.next_token_layers > 0;
  MoeConfig& moe = config.moe;
  if (moe.routing.experts == 0) return InvalidArgument("{} is missing", keys.Full("expert_count"));
  TROUPE_RETURN_IF_ERROR(ReadExpertSizes(keys, 0, moe));
  TROUPE_RETURN_IF_ERROR(ReadDenseAndShared(keys, config));
  TROUPE_RETURN_IF_ERROR(ReadRouting(keys, GateScore::kSigmoid, moe));
  moe.selection_bias = Presence::kRequired;
  config.attention.qk_norm = QkNorm::kPerHeadIfThere;
  config.ffn_norm = "post_attention_norm";
  return config;
}

}  // namespace troupe
