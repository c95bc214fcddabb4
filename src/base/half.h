// IEEE half and bfloat16 as bits in 16 bits, and the 8-bit scales of 4-bit floats (exponents of
// MXFP4, small floats of NVFP4), converted one at a time by exact integer steps (halves round to
// nearest even). kernels/ converts many at once, and is tested against this.
#pragma once

#include <bit>
#include <cstdint>

namespace troupe {

inline float HalfToFloat(std::uint16_t h) {
  const std::uint32_t sign = static_cast<std::uint32_t>(h & 0x8000u) << 16;
  const std::uint32_t exponent = (h >> 10) & 0x1fu;
  const std::uint32_t mantissa = h & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0) {
    return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
  }
  const float tiny = static_cast<float>(mantissa) * 0x1p-24f;  // subnormal half: exact in float
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(tiny));
}

inline std::uint16_t FloatToHalf(float f) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(f);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {  // a NaN stays one, quiet
    return static_cast<std::uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  }
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // >= 65520
  if (magnitude < 0x38800000u) {  // below the least normal half: let the adder round
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u));
  }
  const std::uint32_t odd = (magnitude >> 13) & 1u;
  const std::uint32_t rounded = magnitude - (112u << 23) + 0xfffu + odd;
  return static_cast<std::uint16_t>(sign | (rounded >> 13));
}

inline float Bf16ToFloat(std::uint16_t b) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(b) << 16);
}

inline std::uint16_t FloatToBf16(float f) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(f);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  }
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// 2^(e - 128), half of the power of two that the exponent stands for (and so finite for each of
// them; the two least are subnormal).
inline float HalvedExponentToFloat(std::uint8_t e) {
  return std::bit_cast<float>(e < 2 ? 0x00200000u << e : (e - 1u) << 23);
}

// Half of a float of 4 bits of exponent and 3 of mantissa below a sign that counts for nothing:
// 2^(e - 8) (1 + m / 8), or 2^-10 m where the exponent is 0. As ggml has it, 0x7f is 0 (a NaN by
// OCP's definition), and 0xff is not.
inline float HalvedE4M3ToFloat(std::uint8_t bits) {
  const std::uint32_t magnitude = bits & 0x7fu;
  if (bits == 0x7f) return 0;
  if (magnitude < 8) return static_cast<float>(magnitude) * 0x1p-10f;
  return std::bit_cast<float>((magnitude << 20) + (119u << 23));
}

// The E4M3 for a number that is not negative, as ggml rounds: to the nearest, ties up; but below
// 2^-6 nothing to more than 7 steps, and all from 248 on to the largest, 448.
inline std::uint8_t FloatToE4M3(float f) {
  if (!(f < 248)) return 0x7e;
  if (f < 0x1p-6f) return f < 0x7p-9f ? static_cast<std::uint8_t>(f * 0x1p9f + 0.5f) : 7;
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(f) + (1u << 19);
  return static_cast<std::uint8_t>((bits >> 20) - (120u << 3));
}

}  // namespace troupe
