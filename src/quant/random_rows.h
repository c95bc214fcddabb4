// Rows of any type for tests, benchmarks and the test of a device: random codes and packed scales,
// every bit pattern of them, with block scales (and plain numbers) that are finite and of ordinary
// size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/half.h"
#include "base/rng.h"
#include "base/tensor_type.h"
#include "quant/block_formats.h"
#include "quant/book_codes.h"

namespace troupe {

inline std::vector<TensorType> AllTypes() {
  std::vector<TensorType> types;
  for (const TensorTypeInfo& info : AllTensorTypes()) types.push_back(info.type);
  return types;
}

// `rows` rows as a file stores them.
inline std::vector<std::byte> RandomRows(TensorType type, std::size_t rows, std::size_t cols,
                                         Rng& rng) {
  std::vector<std::byte> bytes(rows * RowBytes(type, cols).count());
  const auto number = [&rng] { return static_cast<float>(rng.Normal()); };
  const auto fill = [&](auto make_element, auto element) {
    for (std::size_t i = 0; i < bytes.size(); i += sizeof element) {
      element = make_element();
      std::memcpy(bytes.data() + i, &element, sizeof element);
    }
  };
  const bool blocks = WithBlockType(type, [&]<typename Block>() {
    const auto make_block = [&] {
      Block b;
      auto* raw = reinterpret_cast<unsigned char*>(&b);
      for (std::size_t i = 0; i < sizeof b; ++i) raw[i] = static_cast<unsigned char>(rng.Next());
      if constexpr (kHasBook<Block>) {
        SetHalf(FloatToHalf(0.01f * number()), b);
      } else if constexpr (kHasFloatScales<Block>) {
        return b;
      } else if constexpr (sizeof b.d == 1) {
        b.d = static_cast<std::uint8_t>(118 + rng.Below(8));
      } else {
        b.d = FloatToHalf(0.01f * number());
      }
      if constexpr (requires { b.m; }) b.m = FloatToHalf(0.01f * number());
      if constexpr (requires { b.dmin; }) b.dmin = FloatToHalf(0.01f * number());
      return b;
    };
    fill(make_block, Block());
  });
  if (blocks) return bytes;
  if (type == TensorType::kF32) {
    fill(number, 0.0f);
  } else if (type == TensorType::kF16) {
    fill([&] { return FloatToHalf(number()); }, std::uint16_t{});
  } else {
    fill([&] { return FloatToBf16(number()); }, std::uint16_t{});
  }
  return bytes;
}

}  // namespace troupe
