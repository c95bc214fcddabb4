// The blocks that GGUF stores quantized weights in, byte for byte: what lies in a file, nothing
// about what it means as numbers (dequantize.h) or how it is chosen (quantize.h). Scales are IEEE
// half bits, little endian; all members are bytes or 16-bit words, so no block has padding.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/tensor_type.h"

namespace troupe {

inline constexpr std::size_t kBlock = 32;        // elements of a Q4_0 .. Q8_0 block
inline constexpr std::size_t kSuperBlock = 256;  // elements of a K-quant block

// 32 elements that share one scale d (and, for the _1 types, an offset m). Byte j of qs holds
// element j in its low nibble and element j + 16 in its high one; bit i of qh, a little-endian
// 32-bit word, is the fifth bit of element i.
struct BlockQ4_0 {  // x = d * (q - 8)
  std::uint16_t d;
  std::uint8_t qs[kBlock / 2];
};
struct BlockQ4_1 {  // x = d * q + m
  std::uint16_t d;
  std::uint16_t m;
  std::uint8_t qs[kBlock / 2];
};
struct BlockQ5_0 {  // x = d * (q - 16)
  std::uint16_t d;
  std::uint8_t qh[4];
  std::uint8_t qs[kBlock / 2];
};
struct BlockQ5_1 {  // x = d * q + m
  std::uint16_t d;
  std::uint16_t m;
  std::uint8_t qh[4];
  std::uint8_t qs[kBlock / 2];
};
struct BlockQ8_0 {  // x = d * q
  std::uint16_t d;
  std::int8_t qs[kBlock];
};

// 256 elements in groups with scales of their own, which are small integers times the block's d
// (and minimums times dmin). Where the bits of an element lie is said in k_quant_layout.h.
struct BlockQ2_K {          // 16 groups of 16: x = d * scale * q - dmin * min
  std::uint8_t scales[16];  // low nibble scale, high nibble min
  std::uint8_t qs[64];      // 2 bits an element
  std::uint16_t d;
  std::uint16_t dmin;
};
struct BlockQ3_K {          // 16 groups of 16: x = d * (scale - 32) * (q - 4)
  std::uint8_t hmask[32];   // third bit of the elements
  std::uint8_t qs[64];      // their low 2 bits
  std::uint8_t scales[12];  // 16 scales of 6 bits
  std::uint16_t d;
};
struct BlockQ4_K {  // 8 groups of 32: x = d * scale * q - dmin * min
  std::uint16_t d;
  std::uint16_t dmin;
  std::uint8_t scales[12];  // 8 scales and 8 mins of 6 bits
  std::uint8_t qs[128];     // 4 bits an element
};
struct BlockQ5_K {  // 8 groups of 32: x = d * scale * q - dmin * min
  std::uint16_t d;
  std::uint16_t dmin;
  std::uint8_t scales[12];  // as in BlockQ4_K
  std::uint8_t qh[32];      // fifth bit of the elements
  std::uint8_t qs[128];     // their low 4 bits
};
struct BlockQ6_K {       // 16 groups of 16: x = d * scale * (q - 32)
  std::uint8_t ql[128];  // low 4 bits of the elements
  std::uint8_t qh[64];   // their upper 2 bits
  std::int8_t scales[16];
  std::uint16_t d;
};

static_assert(sizeof(BlockQ4_0) == 18 && sizeof(BlockQ4_1) == 20 && sizeof(BlockQ5_0) == 22);
static_assert(sizeof(BlockQ5_1) == 24 && sizeof(BlockQ8_0) == 34);
static_assert(sizeof(BlockQ2_K) == 84 && sizeof(BlockQ3_K) == 110 && sizeof(BlockQ4_K) == 144);
static_assert(sizeof(BlockQ5_K) == 176 && sizeof(BlockQ6_K) == 210);

}  // namespace troupe
