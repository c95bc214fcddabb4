// What ggml itself makes of the same inputs, recorded as hashes: the libggml-base in npm's
// node-llama-cpp 3.22.1 for linux-x64, called through dequantize_row_* and ggml_quantize_chunk
// (without an importance matrix). The inputs are made by exact arithmetic, so they are the same
// everywhere.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "base/rng.h"
#include "quant/block_formats.h"
#include "quant/book_codes.h"
#include "quant/dequantize.h"
#include "quant/quantize.h"
#include "quant/round_trip.h"

namespace troupe {
namespace {

// Random bits throughout, but scales below 2 in magnitude: finite, often subnormal, any sign.
std::vector<std::byte> BlocksOfRandomBits(TensorType type, std::size_t count) {
  Rng rng(42);
  std::vector<std::byte> bytes;
  WithBlockType(type, [&]<typename Block>() {
    for (std::size_t i = 0; i < count; ++i) {
      std::array<std::byte, sizeof(Block)> raw;
      for (std::byte& b : raw) b = static_cast<std::byte>(rng.Next());
      auto block = std::bit_cast<Block>(raw);
      if constexpr (kHasBook<Block>) {
        SetHalf(HalfOf(block) & 0xbfff, block);
      } else if constexpr (kHasFloatScales<Block>) {
        // Any bits make a finite scale.
      } else if constexpr (sizeof block.d == 1) {
        block.d &= 0x7f;
      } else {
        block.d &= 0xbfff;
      }
      if constexpr (requires { block.m; }) block.m &= 0xbfff;
      if constexpr (requires { block.dmin; }) block.dmin &= 0xbfff;
      raw = std::bit_cast<decltype(raw)>(block);
      bytes.insert(bytes.end(), raw.begin(), raw.end());
    }
  });
  return bytes;
}

// Bell-shaped values, then blocks in which many values lie exactly between two codes, then blocks
// of one value, of zeros, and of values whose scale is subnormal or 0 as a half.
std::vector<float> ValuesToQuantize() {
  Rng rng(42);
  std::vector<float> x = BellShapedValues(64 * 32, 0.05, rng);
  for (const int levels : {15, 16, 31, 32, 254}) {
    for (int i = 0; i < 32; ++i) x.push_back(static_cast<float>(i * levels / 31 - levels / 2) / 2);
  }
  for (const float value : {0.0f, -0.0f, 0.75f, -3e-7f, 1e-9f, 1e-30f, 60000.0f}) {
    x.insert(x.end(), 32, value);
  }
  for (const float size : {1e-4f, 1e-6f, 1e-8f, 1e3f}) {
    for (int i = 0; i < 32; ++i) x.push_back(size * static_cast<float>(rng.Uniform() - 0.3));
  }
  return x;
}

struct Golden {
  TensorType type;
  std::uint64_t hash;
};

TEST(GgmlGolden, DequantizesRandomBlocksToTheSameBits) {
  constexpr Golden kGoldens[] = {
      {TensorType::kQ4_0, 0x74e2b407c911f889u},    {TensorType::kQ4_1, 0x1304cd67acf7ad24u},
      {TensorType::kMXFP4, 0xc4c326a18be01e7au},   {TensorType::kIQ4_NL, 0x68577cdfc05a3650u},
      {TensorType::kIQ4_XS, 0x483e516125a813bcu},  {TensorType::kQ5_0, 0x70afd664c1d07277u},
      {TensorType::kQ5_1, 0x4cf5cb7dd39e92c8u},    {TensorType::kQ8_0, 0x3a036a4b3e0265f1u},
      {TensorType::kQ2_K, 0x339588906e0d1b33u},    {TensorType::kQ3_K, 0x79f6f528ee09233eu},
      {TensorType::kQ4_K, 0x2028c59c1bb9eabau},    {TensorType::kQ5_K, 0x48d7d2c6d6809925u},
      {TensorType::kQ6_K, 0x7d15b5718ad8d85cu},    {TensorType::kIQ1_S, 0x30bdba25db02347fu},
      {TensorType::kIQ1_M, 0xe2806e07b1e1d342u},   {TensorType::kIQ2_XXS, 0x1364b7978e0bd5ceu},
      {TensorType::kIQ2_XS, 0x6334887e470b043eu},  {TensorType::kIQ2_S, 0x4f63153b62c19da7u},
      {TensorType::kIQ3_XXS, 0xcc80b8ccb2d962c0u}, {TensorType::kIQ3_S, 0x98527ca85a1bb6a7u},
      {TensorType::kNVFP4, 0x325b1124a3a49aa6u},
  };
  for (const Golden& golden : kGoldens) {
    const auto blocks = BlocksOfRandomBits(golden.type, 64);
    std::vector<float> values(64 * Info(golden.type).block_elems);
    DequantizeRow(golden.type, blocks, values);
    EXPECT_EQ(Hash(std::as_bytes(std::span(values))), golden.hash) << Name(golden.type);
  }
}

TEST(GgmlGolden, RoundsBlocksOf32And64ToTheSameBytes) {
  constexpr Golden kGoldens[] = {
      {TensorType::kQ4_0, 0xda7708ea91fac748u},  {TensorType::kQ4_1, 0x25975da151f438f7u},
      {TensorType::kQ5_0, 0x1d76aad6188143f0u},  {TensorType::kQ5_1, 0x6961030cae607f6cu},
      {TensorType::kQ8_0, 0x3282dc10094976afu},  {TensorType::kMXFP4, 0xb0fc8b2414320f72u},
      {TensorType::kNVFP4, 0x6c2576f6f4453b25u},
  };
  const std::vector<float> values = ValuesToQuantize();
  for (const Golden& golden : kGoldens) {
    std::vector<std::byte> bytes(RowBytes(golden.type, values.size()).count());
    QuantizeRow(golden.type, values, bytes);
    EXPECT_EQ(Hash(bytes), golden.hash) << Name(golden.type);
  }
}

}  // namespace
}  // namespace troupe
