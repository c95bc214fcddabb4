// Qwen3.5-MoE and Qwen3.6-MoE: the blocks of qwen3next. Value heads are ordered otherwise, rotary
// positions have sections for pictures (text has one position, so that they make no difference),
// and a layer that guesses a further token may follow the last one.
#include <algorithm>
#include <array>

#include "model/arch/keys.h"

namespace troupe {
namespace {

// Pairs take turns among three sections, each as long as its length says; a pair beyond all three
// would not rotate in a text.
Status CheckSections(const ArchKeys& keys, std::uint32_t pairs) {
  const std::string name = keys.Full("rope.dimension_sections");
  if (keys.metadata().Find(name) == nullptr) return OkStatus();
  TROUPE_ASSIGN_OR_RETURN(const std::vector<std::int64_t> sections, keys.metadata().GetInts(name));
  for (std::uint32_t pair = 0; pair < pairs; ++pair) {
    const std::uint32_t section = pair % 3;
    if (section < sections.size() && pair < 3 * sections[section]) continue;
    return keys.metadata().BadValue(
        name, fmt::format("three sections that share the {} pairs in turns", pairs));
  }
  return OkStatus();
}

}  // namespace

Result<ModelConfig> ReadQwen35MoeConfig(const Metadata& metadata) {
  const ArchKeys keys(metadata, "qwen35moe");
  TROUPE_ASSIGN_OR_RETURN(ModelConfig config,
                          ReadCommonConfig(keys, Architecture::kQwen35Moe, RopePairs::kHalves));
  TROUPE_RETURN_IF_ERROR(CheckSections(keys, config.rope.dims / 2));
  TROUPE_RETURN_IF_ERROR(ReadNextTokenLayers(keys, config));
  config.next_token_head = config.next_token_layers > 0;
  config.attention.qk_norm = QkNorm::kPerHead;
  config.attention.gated = true;
  config.ffn_norm = "post_attention_norm";
  TROUPE_RETURN_IF_ERROR(ReadDeltaNet(keys, config));
  config.delta->tiled = true;
  TROUPE_RETURN_IF_ERROR(ReadQwen3NextExperts(keys, config));
  return config;
}

}  // namespace troupe
