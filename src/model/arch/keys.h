// Reads a family's keys ("olmoe.block_count") and the part of a configuration that every family
// spells alike. What only one family has is in that family's file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "gguf/metadata.h"
#include "model/config.h"

namespace troupe {

class ArchKeys {
 public:
  ArchKeys(const Metadata& metadata, std::string_view prefix)
      : metadata_(metadata), prefix_(prefix) {}

  // A whole number in [least, most]; the error names key, value and limits.
  Result<std::uint32_t> Count(std::string_view key, std::uint32_t least, std::uint32_t most) const;
  Result<std::uint32_t> CountOr(std::string_view key, std::uint32_t otherwise, std::uint32_t least,
                                std::uint32_t most) const;
  // A number, or an array of one a layer: one a layer.
  Result<std::vector<std::uint32_t>> PerLayerOr(std::string_view key, std::uint32_t otherwise,
                                                std::uint32_t layers, std::uint32_t least,
                                                std::uint32_t most) const;
  Result<float> NumberOr(std::string_view key, float otherwise) const;
  // The usual limit is far above the base of any rotation and any scale.
  Result<float> PositiveNumberOr(std::string_view key, float otherwise, float most = 1e12f) const;
  Result<bool> FlagOr(std::string_view key, bool otherwise) const;
  Result<std::string_view> TextOr(std::string_view key, std::string_view otherwise) const;

  std::string Full(std::string_view key) const { return prefix_ + "." + std::string(key); }
  const Metadata& metadata() const { return metadata_; }

 private:
  Result<std::uint32_t> InRange(std::string_view key, std::uint64_t value, std::uint32_t least,
                                std::uint32_t most) const;

  const Metadata& metadata_;
  std::string prefix_;
};

// Limits on what a file may claim: far above any model there is, low enough that no product of two
// overflows 64 bits or allocates before it was checked.
inline constexpr std::uint32_t kMaxLayers = 4096;
inline constexpr std::uint32_t kMaxWidth = 1u << 20;
inline constexpr std::uint32_t kMaxHeads = 1u << 14;
inline constexpr std::uint32_t kMaxHeadDim = 1u << 14;
inline constexpr std::uint32_t kMaxContext = 1u << 30;

// Whether all layers have as many key heads. Where they differ, ReadCommonConfig takes the largest
// number, as it does of dense feed-forwards then, and the family reads them all.
enum class KeyHeads { kAlike, kOfEachLayer };

// Everything that is spelled alike: sizes, norm, heads, rotary embedding, expert counts.
Result<ModelConfig> ReadCommonConfig(const ArchKeys& keys, Architecture architecture,
                                     RopePairs pairs, KeyHeads key_heads = KeyHeads::kAlike);
// Expert sizes of families that have none of the special keys; dense_ff is what an expert measures
// where the family has no key for it.
Status ReadExpertSizes(const ArchKeys& keys, std::uint32_t default_expert_ff, MoeConfig& moe);
// How a router's logits become scores; `otherwise` where the file does not say.
Result<GateScore> ReadGateScore(const ArchKeys& keys, GateScore otherwise);
// What the chosen weights are multiplied by, in the families that have such a key.
Status ReadExpertScale(const ArchKeys& keys, MoeConfig& moe);
// All that files of DeepSeek's line say of how experts are chosen: score, scale, whether weights
// sum to one, groups. Then leading dense layers and shared experts.
Status ReadRouting(const ArchKeys& keys, GateScore otherwise, MoeConfig& moe);
Status ReadDenseAndShared(const ArchKeys& keys, ModelConfig& config);
// Layers behind the last one, which guess further tokens and are left out.
Status ReadNextTokenLayers(const ArchKeys& keys, ModelConfig& config);

// Sizes of the heads of Mamba-2.
Result<StateSpaceConfig> ReadStateSpace(const ArchKeys& keys);
// Flags of the layers that have no key heads, where all others have as many; none: there are none.
Result<std::vector<bool>> ReadLayersWithoutKeys(const ArchKeys& keys, const ModelConfig& config);

// What Granite multiplies embeddings and answers with and divides logits by, and whether its heads
// rotate; then its experts, which it has.
Status ReadGraniteScales(const ArchKeys& keys, ModelConfig& config);
Status ReadGraniteExperts(const ArchKeys& keys, ModelConfig& config);

// The layers that have a gated delta net, and its sizes; config.layers is known.
Status ReadDeltaNet(const ArchKeys& keys, ModelConfig& config);
// Experts and shared expert of the families of Qwen3-Next.
Status ReadQwen3NextExperts(const ArchKeys& keys, ModelConfig& config);

// What YaRN multiplies cosine and sine by when it stretches a context by `factor`.
float YarnMagnitude(float factor);

Result<ModelConfig> ReadLlamaConfig(const Metadata& metadata);
Result<ModelConfig> ReadQwen2MoeConfig(const Metadata& metadata);
Result<ModelConfig> ReadQwen3MoeConfig(const Metadata& metadata);
Result<ModelConfig> ReadOlmoeConfig(const Metadata& metadata);
Result<ModelConfig> ReadDeepseekConfig(const Metadata& metadata);
Result<ModelConfig> ReadDeepseek2Config(const Metadata& metadata);
Result<ModelConfig> ReadQwen3NextConfig(const Metadata& metadata);
Result<ModelConfig> ReadQwen35MoeConfig(const Metadata& metadata);
Result<ModelConfig> ReadGptOssConfig(const Metadata& metadata);
Result<ModelConfig> ReadMinimaxM2Config(const Metadata& metadata);
Result<ModelConfig> ReadLfm2MoeConfig(const Metadata& metadata);
Result<ModelConfig> ReadGlm4MoeConfig(const Metadata& metadata);
Result<ModelConfig> ReadGraniteMoeConfig(const Metadata& metadata);
Result<ModelConfig> ReadGraniteHybridConfig(const Metadata& metadata);
Result<ModelConfig> ReadGemma4Config(const Metadata& metadata);
Result<ModelConfig> ReadQwen3VlMoeConfig(const Metadata& metadata);
Result<ModelConfig> ReadDots1Config(const Metadata& metadata);
Result<ModelConfig> ReadErnie45MoeConfig(const Metadata& metadata);
Result<ModelConfig> ReadHunyuanMoeConfig(const Metadata& metadata);
Result<ModelConfig> ReadBailingMoe2Config(const Metadata& metadata);
Result<ModelConfig> ReadNemotronHConfig(const Metadata& metadata);
Result<ModelConfig> ReadNemotronHMoeConfig(const Metadata& metadata);
Result<ModelConfig> ReadSwitchConfig(const Metadata& metadata);

}  // namespace troupe
