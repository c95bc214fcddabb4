// K-quants without a search: each group from its extremes, its scale and min to the nearest
// integers of a block scale that fits the largest of them. What the search is measured against.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/half.h"
#include "quant/block_codes.h"
#include "quant/quantize_blocks.h"

namespace troupe::internal {
namespace {

template <typename Block>
Block RoundFromExtremes(std::span<const float> x) {
  std::array<float, Block::kGroups> scale{}, min{};
  for (std::size_t g = 0; g < Block::kGroups; ++g) {
    const auto [low, high] =
        std::ranges::minmax_element(x.subspan(g * Block::kGroupElems, Block::kGroupElems));
    if (Block::kHasMin) {
      min[g] = std::max(0.0f, -*low);
      scale[g] = (std::max(*high, 0.0f) + min[g]) / Block::kMaxCode;
    } else {
      scale[g] = (*high > -*low ? *high : *low) / -Block::kOffset;
    }
  }
  const auto steps = [](auto& values, int most) {
    float largest = 0;
    for (const float v : values) largest = std::max(largest, std::fabs(v));
    return largest / static_cast<float>(most);
  };
  Block b{};
  b.d = FloatToHalf(steps(scale, Block::kMaxScale));
  if constexpr (Block::kHasMin) b.dmin = FloatToHalf(steps(min, Block::kMaxScale));
  GroupScales<Block> groups;
  Codes<Block> codes{};
  for (std::size_t g = 0; g < Block::kGroups; ++g) {
    const auto count = [](float value, std::uint16_t half) {
      const float step = HalfToFloat(half);
      const int n = static_cast<int>(std::nearbyint(step == 0 ? 0 : value / step));
      return std::clamp(n, Block::kMinScale, Block::kMaxScale);
    };
    groups.scale[g] = static_cast<std::int8_t>(count(scale[g], b.d));
    const float d = HalfToFloat(b.d) * groups.scale[g];
    float m = 0;
    if constexpr (Block::kHasMin) {
      groups.min[g] = static_cast<std::uint8_t>(count(min[g], b.dmin));
      m = HalfToFloat(b.dmin) * groups.min[g];
    }
    for (std::size_t i = g * Block::kGroupElems; i < (g + 1) * Block::kGroupElems; ++i) {
      const float level = d == 0 ? 0 : std::nearbyint((x[i] + m) / d) + Block::kOffset;
      codes[i] = static_cast<std::uint8_t>(std::clamp(level, 0.0f, 1.0f * Block::kMaxCode));
    }
  }
  PackScales(groups, b);
  PackCodes(codes, b);
  return b;
}

}  // namespace

void RoundSuperBlocks(TensorType type, std::span<const float> src, std::span<std::byte> dst) {
  WithBlockType(type, [&]<typename Block>() {
    if constexpr (Block::kElems == 256 && !kHasLevels<Block>) {
      ForEachBlock<Block>(src, dst, {},
                          [](auto values, auto) { return RoundFromExtremes<Block>(values); });
    }
  });
}

}  // namespace troupe::internal
