// NVFP4: 4-bit floats in groups of 16 with a small float for a scale. Plainly it is the one that
// brings the largest magnitude to the end of the table, rounded; a search tries those around it. A
// larger one may leave that magnitude on the last level but one, where the others gain more.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/half.h"
#include "quant/block_codes.h"
#include "quant/normalize.h"
#include "quant/quantize_blocks.h"

namespace troupe::internal {
namespace {

using Group = std::span<const float, BlockNVFP4::kGroupElems>;

constexpr std::size_t kMagnitudes = 8;  // levels without a sign; their codes have bit 3 clear

// Half-way between magnitudes; of two as near the lower one is taken. A place times a scale is
// exact, so nothing is decided by a rounding.
constexpr std::array<float, kMagnitudes - 1> kHalfWay = [] {
  std::array<float, kMagnitudes - 1> places{};
  for (std::size_t i = 0; i < places.size(); ++i) {
    places[i] = static_cast<float>(BlockNVFP4::kLevels[i] + BlockNVFP4::kLevels[i + 1]) / 2;
  }
  return places;
}();

std::uint8_t CodeAt(float x, float scale) {
  const float magnitude = std::fabs(x);
  unsigned code = 0;
  for (const float place : kHalfWay) code += magnitude > place * scale;
  return static_cast<std::uint8_t>(x < 0 && code != 0 ? code | kMagnitudes : code);
}

std::uint8_t PlainScale(Group x) {
  constexpr float kLargest = 6;  // of a 4-bit float
  float most = 0;
  for (const float v : x) most = std::max(most, std::fabs(v));
  return FloatToE4M3(most / kLargest);
}

double ErrorAt(float scale, Group x, std::span<const float> w) {
  double error = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float level = BlockNVFP4::kLevels[CodeAt(x[i], scale)];
    const double miss = static_cast<double>(x[i]) - static_cast<double>(scale * level);
    error += static_cast<double>(w[i]) * miss * miss;
  }
  return error;
}

// The bytes of scales are in the order of what they stand for. From 4 below the plain one to 6
// above: in the binades where a step is at most an eighth, to 0.7 and 1.6 times as much.
std::uint8_t FindScale(Group x, std::span<const float> w) {
  constexpr int kLargest = 0x7e, kBelow = 4, kAbove = 6;
  const int plain = PlainScale(x);
  int best = plain;
  double least = ErrorAt(HalvedE4M3ToFloat(static_cast<std::uint8_t>(plain)), x, w);
  for (int s = std::max(0, plain - kBelow); s <= std::min(kLargest, plain + kAbove); ++s) {
    const double error = ErrorAt(HalvedE4M3ToFloat(static_cast<std::uint8_t>(s)), x, w);
    if (error < least) {
      least = error;
      best = s;
    }
  }
  return static_cast<std::uint8_t>(best);
}

BlockNVFP4 QuantizeBlock(std::span<const float> x, std::span<const float> importance,
                         Rounding rounding) {
  const bool search =
      rounding == Rounding::kBest || (rounding == Rounding::kReference && !importance.empty());
  // Of it the weights alone: scales have no unit that values could be brought to.
  const auto block = NormalizedBlock<BlockNVFP4::kElems>::From(x, importance);
  BlockNVFP4 b{};
  Codes<BlockNVFP4> codes{};
  for (std::size_t g = 0; g < BlockNVFP4::kGroups; ++g) {
    const std::size_t first = g * BlockNVFP4::kGroupElems;
    const Group group = x.subspan(first).first<BlockNVFP4::kGroupElems>();
    b.scales[g] =
        search && block ? FindScale(group, block->Group(g, group.size()).w) : PlainScale(group);
    const float scale = HalvedE4M3ToFloat(b.scales[g]);
    if (scale == 0) continue;  // zeros, whatever their codes
    for (std::size_t i = 0; i < group.size(); ++i) codes[first + i] = CodeAt(group[i], scale);
  }
  PackCodes(codes, b);
  return b;
}

}  // namespace

void QuantizeNvfp4(std::span<const float> src, std::span<std::byte> dst,
                   std::span<const float> importance, Rounding rounding) {
  ForEachBlock<BlockNVFP4>(src, dst, importance, [&](auto values, auto weights) {
    return QuantizeBlock(values, weights, rounding);
  });
}

}  // namespace troupe::internal
