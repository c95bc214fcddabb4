// Canonical products, scalar. See panel_reference.h.
#include "quant/panel_reference.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "base/half.h"
#include "quant/block_codes.h"
#include "quant/block_formats.h"
#include "quant/dequantize.h"

namespace troupe {
namespace {

// Scale and min of the run of kScaleCols columns that begins at `run` * kScaleCols.
struct RunScale {
  float scale;
  float min;
};

template <typename Block>
RunScale ScaleOfRun(const Block& b, [[maybe_unused]] std::size_t run) {
  if constexpr (Block::kHasMin) {
    return {ScaleOf(b), HalfToFloat(b.m)};
  } else {
    return {ScaleOf(b), 0.0f};
  }
}

template <typename Block>
requires(Block::kGroups > 0) RunScale ScaleOfRun(const Block& b, std::size_t run) {
  RunScale s{GroupScalesOf(b)[run], 0.0f};
  if constexpr (Block::kHasMin) {
    s.min = -GroupMinsOf(b)[run];
  }
  return s;
}

template <typename Block>
float DotBlocks(std::span<const std::byte> row, const Activations& x, std::size_t token) {
  constexpr std::size_t kRuns = kGroupCols / kScaleCols<Block>;  // in 32 columns
  const ActivationGroup* group = x.Groups(token);
  float acc = 0.0f;
  for (std::size_t i = 0; i < row.size() / sizeof(Block); ++i) {
    Block b;
    std::memcpy(&b, row.data() + i * sizeof(Block), sizeof(Block));
    const Codes<Block> q = UnpackCodes(b);
    for (std::size_t g = 0; g < PanelLayout<Block>::kGroups; ++g, ++group) {
      float t = 0.0f;
      for (std::size_t run = 0; run < kRuns; ++run) {
        std::int32_t dot = 0;
        for (std::size_t k = run * kScaleCols<Block>; k < (run + 1) * kScaleCols<Block>; ++k) {
          dot += LevelOf<Block>(q[g * kGroupCols + k]) * group->codes[k];
        }
        const float scale = ScaleOfRun(b, g * kRuns + run).scale;
        t = run == 0 ? static_cast<float>(dot) * scale
                     : std::fma(static_cast<float>(dot), scale, t);
      }
      if constexpr (Block::kHasMin) {
        for (std::size_t run = 0; run < kRuns; ++run) {
          const std::int32_t sum = kRuns == 1 ? group->sum : group->half_sum[run];
          t = std::fma(static_cast<float>(sum), ScaleOfRun(b, g * kRuns + run).min, t);
        }
      }
      acc = std::fma(t, group->scale, acc);
    }
  }
  return acc;
}

}  // namespace

float PanelDotReference(TensorType type, std::span<const std::byte> row, const Activations& x,
                        std::size_t token) {
  TROUPE_CHECK(row.size() == RowBytes(type, x.cols).count() && token < x.tokens);
  float acc = 0.0f;
  if (WithBlockType(type, [&]<typename Block>() { acc = DotBlocks<Block>(row, x, token); })) {
    return acc;
  }
  std::vector<float> w(x.cols);
  DequantizeRow(type, row, w);
  for (std::size_t k = 0; k < x.cols; ++k) acc = std::fma(w[k], x.Values(token)[k], acc);
  return acc;
}

}  // namespace troupe
