// Sets of code points as sequences of byte ranges: the UTF-8 of a range of code points is the union
// of a few products of byte ranges, as Unicode's table of well-formed sequences has them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "text/grammar/grammar.h"

namespace troupe {

struct ByteRange {
  std::uint8_t first = 0;
  std::uint8_t last = 0;

  bool operator==(const ByteRange&) const = default;
};

// The characters whose i-th byte lies in the i-th range, for all combinations.
struct Utf8Sequence {
  std::array<ByteRange, 4> ranges;
  std::size_t length = 0;
};

// In ascending order; no character is in two of them.
std::vector<Utf8Sequence> Utf8Sequences(const CodePointSet& set);

// Whether a normalized set has anything but surrogates.
bool HasCharacters(const CodePointSet& set);

}  // namespace troupe
