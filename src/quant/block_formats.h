// The blocks that GGUF stores quantized weights in, byte for byte: where the bytes lie and what the
// numbers in them stand for. How codes and group scales are packed into the bytes: block_codes.h.
// Members are bytes and 16-bit words (IEEE halves, little endian), so no block has padding; blocks
// in a file may have any alignment, so copy them out with memcpy.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/tensor_type.h"

namespace troupe {

static_assert(std::endian::native == std::endian::little, "GGUF is read in place");

// The constants of a block type. A code q is the small unsigned integer stored per element.
// With a min, x = scale * q plus an offset that is stored too; without, x = scale * (q - kOffset),
// or x = scale * kLevels[q] in types that have such a table.
template <TensorType Type, int Elems, int MaxCode, bool HasMin>
struct BlockFormat {
  static constexpr TensorType kType = Type;
  static constexpr std::size_t kElems = Elems;
  static constexpr int kMaxCode = MaxCode;
  static constexpr bool kHasMin = HasMin;
  static constexpr int kOffset = HasMin ? 0 : (MaxCode + 1) / 2;
};

// 32 elements that share one scale.

struct BlockQ4_0 : BlockFormat<TensorType::kQ4_0, 32, 15, false> {  // x = d * (q - 8)
  std::uint16_t d;
  std::uint8_t qs[16];
};
struct BlockQ4_1 : BlockFormat<TensorType::kQ4_1, 32, 15, true> {  // x = d * q + m
  std::uint16_t d;
  std::uint16_t m;
  std::uint8_t qs[16];
};
struct BlockQ5_0 : BlockFormat<TensorType::kQ5_0, 32, 31, false> {  // x = d * (q - 16)
  std::uint16_t d;
  std::uint8_t qh[4];
  std::uint8_t qs[16];
};
struct BlockQ5_1 : BlockFormat<TensorType::kQ5_1, 32, 31, true> {  // x = d * q + m
  std::uint16_t d;
  std::uint16_t m;
  std::uint8_t qh[4];
  std::uint8_t qs[16];
};
struct BlockQ8_0 : BlockFormat<TensorType::kQ8_0, 32, 255, false> {  // x = d * (q - 128)
  std::uint16_t d;
  std::int8_t qs[32];  // q - 128
};

// 32 elements whose codes are places in a table of 16 unequal steps, which it shares with IQ4_XS.
inline constexpr std::array<std::int8_t, 16> kUnequalLevels = {
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

struct BlockIQ4_NL : BlockFormat<TensorType::kIQ4_NL, 32, 15, false> {  // x = d * kLevels[q]
  static constexpr auto kLevels = kUnequalLevels;
  std::uint16_t d;
  std::uint8_t qs[16];
};

// OCP's microscaling format: 4-bit floats (a sign, two bits of exponent, one of mantissa) that
// share a power of two. Levels are twice the floats, so that they are integers; x = d * kLevels[q]
// / 2 with d = 2^(d - 127), which ScaleOf (block_codes.h) gives as 2^(d - 128).
struct BlockMXFP4 : BlockFormat<TensorType::kMXFP4, 32, 15, false> {
  static constexpr std::array<std::int8_t, 16> kLevels = {0, 1,  2,  3,  4,  6,  8,  12,
                                                          0, -1, -2, -3, -4, -6, -8, -12};
  std::uint8_t d;
  std::uint8_t qs[16];
};

// The same floats in 4 groups of 16 that have an 8-bit float for a scale each. x = scale *
// kLevels[q] / 2; HalvedE4M3ToFloat (base/half.h) gives half of the scale.
struct BlockNVFP4 : BlockFormat<TensorType::kNVFP4, 64, 15, false> {
  static constexpr auto kLevels = BlockMXFP4::kLevels;
  static constexpr std::size_t kGroups = 4;
  static constexpr std::size_t kGroupElems = 16;
  std::uint8_t scales[4];
  std::uint8_t qs[32];  // 8 bytes a group: its first 8 elements in low nibbles, the others above
};

// 256 elements in kGroups groups. Each group has an integer scale (and min) in units of the block's
// d (and dmin). Scales are unsigned where there is a min, else signed.

template <TensorType Type, int Groups, int MaxCode, bool HasMin>
struct SuperBlockFormat : BlockFormat<Type, 256, MaxCode, HasMin> {
  static constexpr std::size_t kGroups = Groups;
  static constexpr std::size_t kGroupElems = 256 / Groups;
};

// x = d * scale * q - dmin * min
struct BlockQ2_K : SuperBlockFormat<TensorType::kQ2_K, 16, 3, true> {
  static constexpr int kMinScale = 0, kMaxScale = 15;
  std::uint8_t scales[16];
  std::uint8_t qs[64];
  std::uint16_t d;
  std::uint16_t dmin;
};
// x = d * scale * (q - 4)
struct BlockQ3_K : SuperBlockFormat<TensorType::kQ3_K, 16, 7, false> {
  static constexpr int kMinScale = -32, kMaxScale = 31;
  std::uint8_t hmask[32];
  std::uint8_t qs[64];
  std::uint8_t scales[12];
  std::uint16_t d;
};
// x = d * scale * q - dmin * min
struct BlockQ4_K : SuperBlockFormat<TensorType::kQ4_K, 8, 15, true> {
  static constexpr int kMinScale = 0, kMaxScale = 63;
  std::uint16_t d;
  std::uint16_t dmin;
  std::uint8_t scales[12];
  std::uint8_t qs[128];
};
// x = d * scale * q - dmin * min
struct BlockQ5_K : SuperBlockFormat<TensorType::kQ5_K, 8, 31, true> {
  static constexpr int kMinScale = 0, kMaxScale = 63;
  std::uint16_t d;
  std::uint16_t dmin;
  std::uint8_t scales[12];
  std::uint8_t qh[32];
  std::uint8_t qs[128];
};
// x = d * scale * (q - 32)
struct BlockQ6_K : SuperBlockFormat<TensorType::kQ6_K, 16, 63, false> {
  static constexpr int kMinScale = -128, kMaxScale = 127;
  std::uint8_t ql[128];
  std::uint8_t qh[64];
  std::int8_t scales[16];
  std::uint16_t d;
};

// x = d * scale * kLevels[q]
struct BlockIQ4_XS : SuperBlockFormat<TensorType::kIQ4_XS, 8, 15, false> {
  static constexpr auto kLevels = kUnequalLevels;
  static constexpr int kMinScale = -32, kMaxScale = 31;
  std::uint16_t d;
  std::uint8_t scales[6];
  std::uint8_t qs[128];
};

// 256 elements in words of a code book (code_books.h), WordElems digits each, of 3 bits where there
// are four and of 2 where there are eight. A code is an element's digit with its sign above it.
// x = d * kUnit * scale * kLevels[q]; a scale is stored as half of it, rounded down, in 4 bits
// (IQ1: 3), so it is odd. How the places of words and the signs are packed: book_codes.h.
template <TensorType Type, int Groups, int WordElems>
struct BookFormat : SuperBlockFormat<Type, Groups, (WordElems == 4 ? 15 : 7), false> {
  static constexpr std::size_t kWordElems = WordElems;
  static constexpr int kDigitBits = WordElems == 4 ? 3 : 2;
  static constexpr int kMinScale = 1, kMaxScale = 31;
};

struct BlockIQ3_S : BookFormat<TensorType::kIQ3_S, 8, 4> {
  static constexpr std::array<std::int8_t, 16> kLevels = {1,  3,  5,  7,  9,  11,  13,  15,
                                                          -1, -3, -5, -7, -9, -11, -13, -15};
  static constexpr float kUnit = 1;
  std::uint16_t d;
  std::uint8_t qs[64];
  std::uint8_t qh[8];
  std::uint8_t signs[32];
  std::uint8_t scales[4];
};
struct BlockIQ3_XXS : BookFormat<TensorType::kIQ3_XXS, 8, 4> {
  static constexpr std::array<std::int8_t, 16> kLevels = {2,  6,  10,  14,  18,  22,  26,  31,
                                                          -2, -6, -10, -14, -18, -22, -26, -31};
  static constexpr float kUnit = 0.5f;
  std::uint16_t d;
  std::uint8_t qs[64];
  std::uint8_t signs[32];  // 28 bits of signs and 4 of scale for each 32 elements
};

// Three magnitudes, which the types of IQ2 share.
inline constexpr std::array<std::int8_t, 16> kThreeMagnitudes = {8, 25, 43, 0, -8, -25, -43};

struct BlockIQ2_XXS : BookFormat<TensorType::kIQ2_XXS, 8, 8> {
  static constexpr auto kLevels = kThreeMagnitudes;
  static constexpr float kUnit = 0.125f;
  std::uint16_t d;
  std::uint8_t qs[64];  // for each 32 elements four places, then signs and scale as in IQ3_XXS
};
struct BlockIQ2_XS : BookFormat<TensorType::kIQ2_XS, 16, 8> {
  static constexpr auto kLevels = kThreeMagnitudes;
  static constexpr float kUnit = 0.125f;
  std::uint16_t d;
  std::uint8_t qs[64];  // 9 bits of place and 7 of signs for each 8 elements
  std::uint8_t scales[8];
};
struct BlockIQ2_S : BookFormat<TensorType::kIQ2_S, 16, 8> {
  static constexpr auto kLevels = kThreeMagnitudes;
  static constexpr float kUnit = 0.125f;
  std::uint16_t d;
  std::uint8_t qs[32];
  std::uint8_t signs[32];
  std::uint8_t qh[8];
  std::uint8_t scales[8];
};

// Digits -1, 0, 1 to which an eighth is added, or from which it is subtracted where the "sign" is
// set. A sign belongs to 32 elements in IQ1_S and to 8 in IQ1_M. Levels are eight times that.
inline constexpr std::array<std::int8_t, 16> kShiftedDigits = {-7, 1, 9, 0, -9, -1, 7};

struct BlockIQ1_S : BookFormat<TensorType::kIQ1_S, 8, 8> {
  static constexpr auto kLevels = kShiftedDigits;
  static constexpr int kMaxScale = 15;
  static constexpr float kUnit = 0.125f;
  std::uint16_t d;
  std::uint8_t qs[32];
  std::uint8_t qh[16];  // for each 32 elements four times 3 bits of place, 3 of scale, the sign
};
struct BlockIQ1_M : BookFormat<TensorType::kIQ1_M, 16, 8> {
  static constexpr auto kLevels = kShiftedDigits;
  static constexpr int kMaxScale = 15;
  static constexpr float kUnit = 0.125f;
  std::uint8_t qs[32];
  std::uint8_t qh[16];     // for each 8 elements 3 bits of place and the sign
  std::uint8_t scales[8];  // four words of four scales, 3 bits each, and 4 bits of d
};

// Whether the block is made of words of a code book.
template <typename Block>
inline constexpr bool kHasBook = requires {
  Block::kWordElems;
};

// Whether a group's scale is a float of its own, and there is no d.
template <typename Block>
inline constexpr bool kHasFloatScales = Block::kType == TensorType::kNVFP4;

// Whether the block's codes are places in a table.
template <typename Block>
inline constexpr bool kHasLevels = requires {
  Block::kLevels;
};

// What a code stands for, in units of its scale (and before a min).
template <typename Block>
constexpr int LevelOf(std::uint8_t code) {
  if constexpr (kHasLevels<Block>) {
    return Block::kLevels[code];
  } else {
    return code - Block::kOffset;
  }
}

static_assert(sizeof(BlockIQ4_NL) == 18 && sizeof(BlockMXFP4) == 17 && sizeof(BlockIQ4_XS) == 136);
static_assert(sizeof(BlockNVFP4) == 36);
static_assert(sizeof(BlockIQ3_S) == 110 && sizeof(BlockIQ3_XXS) == 98);
static_assert(sizeof(BlockIQ2_XXS) == 66 && sizeof(BlockIQ2_XS) == 74 && sizeof(BlockIQ2_S) == 82);
static_assert(sizeof(BlockIQ1_S) == 50 && sizeof(BlockIQ1_M) == 56);
static_assert(sizeof(BlockQ4_0) == 18 && sizeof(BlockQ4_1) == 20 && sizeof(BlockQ5_0) == 22);
static_assert(sizeof(BlockQ5_1) == 24 && sizeof(BlockQ8_0) == 34);
static_assert(sizeof(BlockQ2_K) == 84 && sizeof(BlockQ3_K) == 110 && sizeof(BlockQ4_K) == 144);
static_assert(sizeof(BlockQ5_K) == 176 && sizeof(BlockQ6_K) == 210);

// Calls f.operator()<Block>() for the block type that `type` is stored in; false if it has none
// (F32, F16, BF16 are plain numbers).
template <typename F>
bool WithBlockType(TensorType type, F&& f) {
  switch (type) {
    case TensorType::kQ4_0:
      f.template operator()<BlockQ4_0>();
      return true;
    case TensorType::kQ4_1:
      f.template operator()<BlockQ4_1>();
      return true;
    case TensorType::kQ5_0:
      f.template operator()<BlockQ5_0>();
      return true;
    case TensorType::kQ5_1:
      f.template operator()<BlockQ5_1>();
      return true;
    case TensorType::kQ8_0:
      f.template operator()<BlockQ8_0>();
      return true;
    case TensorType::kQ2_K:
      f.template operator()<BlockQ2_K>();
      return true;
    case TensorType::kQ3_K:
      f.template operator()<BlockQ3_K>();
      return true;
    case TensorType::kQ4_K:
      f.template operator()<BlockQ4_K>();
      return true;
    case TensorType::kQ5_K:
      f.template operator()<BlockQ5_K>();
      return true;
    case TensorType::kQ6_K:
      f.template operator()<BlockQ6_K>();
      return true;
    case TensorType::kIQ1_S:
      f.template operator()<BlockIQ1_S>();
      return true;
    case TensorType::kIQ1_M:
      f.template operator()<BlockIQ1_M>();
      return true;
    case TensorType::kIQ2_XXS:
      f.template operator()<BlockIQ2_XXS>();
      return true;
    case TensorType::kIQ2_XS:
      f.template operator()<BlockIQ2_XS>();
      return true;
    case TensorType::kIQ2_S:
      f.template operator()<BlockIQ2_S>();
      return true;
    case TensorType::kIQ3_XXS:
      f.template operator()<BlockIQ3_XXS>();
      return true;
    case TensorType::kIQ3_S:
      f.template operator()<BlockIQ3_S>();
      return true;
    case TensorType::kIQ4_NL:
      f.template operator()<BlockIQ4_NL>();
      return true;
    case TensorType::kIQ4_XS:
      f.template operator()<BlockIQ4_XS>();
      return true;
    case TensorType::kMXFP4:
      f.template operator()<BlockMXFP4>();
      return true;
    case TensorType::kNVFP4:
      f.template operator()<BlockNVFP4>();
      return true;
    case TensorType::kF32:
    case TensorType::kF16:
    case TensorType::kBF16:
      return false;
  }
  return false;
}

}  // namespace troupe
