// A container of a few small experts with bytes that tell each from every other. For tests only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/rng.h"
#include "store/container_writer.h"

namespace troupe {

inline constexpr ModelFingerprint kTestModel = {{0x0123456789abcdef, 0xfedcba9876543210}};
inline constexpr std::uint32_t kTestPanelLayout = 7;

// Layers 1 and 3 of 3 experts each, in two precisions; sizes on both sides of 4 KiB.
inline ContainerIndex TestIndex() {
  const auto layer = [](std::uint32_t number, TensorType type, std::uint64_t bytes) {
    return ContainerLayer{.layer = number,
                          .types = {type, type, TensorType::kQ6_K},
                          .expert_bytes = bytes,
                          .offset = 0,
                          .checksums = {}};
  };
  return {.model = kTestModel,
          .panel_layout = kTestPanelLayout,
          .experts = 3,
          .precisions = {{layer(1, TensorType::kQ8_0, 10000), layer(3, TensorType::kQ4_K, 8192)},
                         {layer(1, TensorType::kQ2_K, 100), layer(3, TensorType::kQ2_K, 4097)}}};
}

inline std::vector<std::byte> TestExpert(std::size_t precision, std::uint32_t layer,
                                         std::uint32_t expert, std::uint64_t bytes) {
  Rng rng(precision * 10000 + layer * 100 + expert);
  std::vector<std::byte> content(bytes);
  for (std::byte& b : content) b = static_cast<std::byte>(rng.Next());
  return content;
}

inline void WriteTestContainer(const std::string& path, const ContainerIndex& index = TestIndex()) {
  ContainerWriter writer = ContainerWriter::Create(path, index).value();
  for (std::size_t p = 0; p < index.precisions.size(); ++p) {
    for (const ContainerLayer& layer : index.precisions[p]) {
      for (std::uint32_t e = 0; e < index.experts; ++e) {
        TROUPE_CHECK(writer.Append(TestExpert(p, layer.layer, e, layer.expert_bytes)).ok());
      }
    }
  }
  TROUPE_CHECK(writer.Finish().ok());
}

}  // namespace troupe
