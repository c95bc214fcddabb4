// The quantizers behind QuantizeRow: one row into blocks, the arguments already checked by it.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>

#include "base/tensor_type.h"
#include "quant/quantize.h"

namespace troupe::internal {

// Q4_0, Q4_1, Q5_0, Q5_1, Q8_0.
void QuantizeBlocks(TensorType type, std::span<const float> src, std::span<std::byte> dst,
                    std::span<const float> importance, Rounding rounding);

// Q2_K, Q3_K, Q4_K, Q5_K, Q6_K: by a search, and from the extremes of each group.
void QuantizeSuperBlocks(TensorType type, std::span<const float> src, std::span<std::byte> dst,
                         std::span<const float> importance);
void RoundSuperBlocks(TensorType type, std::span<const float> src, std::span<std::byte> dst);

// MXFP4, IQ4_NL, IQ4_XS.
void QuantizeLevels(TensorType type, std::span<const float> src, std::span<std::byte> dst,
                    std::span<const float> importance, Rounding rounding);

void QuantizeNvfp4(std::span<const float> src, std::span<std::byte> dst,
                   std::span<const float> importance, Rounding rounding);

// IQ1_*, IQ2_*, IQ3_*.
void QuantizeBooks(TensorType type, std::span<const float> src, std::span<std::byte> dst,
                   std::span<const float> importance, Rounding rounding);

// Calls quantize(values, importance) -> Block for each block of the row and stores the results.
template <typename Block, typename F>
void ForEachBlock(std::span<const float> src, std::span<std::byte> dst,
                  std::span<const float> importance, F&& quantize) {
  constexpr std::size_t kElems = Block::kElems;
  for (std::size_t i = 0; i < src.size() / kElems; ++i) {
    const Block b =
        quantize(src.subspan(i * kElems, kElems),
                 importance.empty() ? importance : importance.subspan(i * kElems, kElems));
    std::memcpy(dst.data() + i * sizeof b, &b, sizeof b);
  }
}

}  // namespace troupe::internal
