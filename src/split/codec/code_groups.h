// Numbers in few bits each: groups of 32, and of what is left, each a scale (bfloat16, so that no
// size overflows) and codes. Pure; the arithmetic is spelled out, so that every machine reads the
// same numbers from the same bytes. Views only: the memory is the caller's.
#pragma once

#include <cstddef>
#include <span>

#include "split/codec/state_code.h"

namespace troupe {

inline constexpr std::size_t kCodedTogether = 32;

std::size_t PackedBytes(StateForm form, std::size_t count);

// As floats: their bytes. In codes of b bits: scale = bf16(max |x| / (2^(b-1) - 1)), a code is
// x / scale, rounded to the nearest, ties to even, and held within +-(2^(b-1) - 1). So a number is
// off by half a scale at most, and the largest by 2^-8 of itself more, as the scale was rounded.
// Codes of 4 bits lie two in a byte, the first in the low half, 8 added. A group that holds an
// infinity or a NaN gets the scale NaN.
void PackNumbers(StateForm form, std::span<const float> numbers, std::span<std::byte> bytes);

// number = scale * code. Of any bytes, also such that nobody would have written: then it may give
// numbers that are not finite.
void UnpackNumbers(StateForm form, std::span<const std::byte> bytes, std::span<float> numbers);

}  // namespace troupe
