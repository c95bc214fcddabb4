#include "text/grammar/utf8_ranges.h"

#include <algorithm>
#include <string>

#include "text/utf8.h"

namespace troupe {
namespace {

constexpr CodePointRange kSurrogates = {0xD800, 0xDFFF};

std::array<CodePointRange, 2> WithoutSurrogates(CodePointRange range) {
  // An empty part ends before it begins.
  return {{{range.first, std::min<char32_t>(range.last, kSurrogates.first - 1)},
           {std::max<char32_t>(range.first, kSurrogates.last + 1), range.last}}};
}

// Cuts a range until all bytes but the last ones that vary agree, and those take all their values.
void Cut(char32_t first, char32_t last, std::vector<Utf8Sequence>& out) {
  if (first > last) return;
  for (const char32_t longest : {char32_t{0x7F}, char32_t{0x7FF}, char32_t{0xFFFF}}) {
    if (first <= longest && longest < last) {
      Cut(first, longest, out);
      Cut(longest + 1, last, out);
      return;
    }
  }
  if (last > 0x7F) {
    for (const unsigned bits : {6U, 12U, 18U}) {
      const char32_t low = (char32_t{1} << bits) - 1;
      if ((first & ~low) == (last & ~low)) break;
      if ((first & low) != 0) {
        Cut(first, first | low, out);
        Cut((first | low) + 1, last, out);
        return;
      }
      if ((last & low) != low) {
        Cut(first, (last & ~low) - 1, out);
        Cut(last & ~low, last, out);
        return;
      }
    }
  }
  std::string low_bytes;
  std::string high_bytes;
  AppendUtf8(first, low_bytes);
  AppendUtf8(last, high_bytes);
  Utf8Sequence sequence{.length = low_bytes.size()};
  for (std::size_t i = 0; i < low_bytes.size(); ++i) {
    sequence.ranges[i] = {static_cast<std::uint8_t>(low_bytes[i]),
                          static_cast<std::uint8_t>(high_bytes[i])};
  }
  out.push_back(sequence);
}

}  // namespace

std::vector<Utf8Sequence> Utf8Sequences(const CodePointSet& set) {
  std::vector<Utf8Sequence> sequences;
  for (const CodePointRange& range : set) {
    for (const CodePointRange& part : WithoutSurrogates(range)) {
      Cut(part.first, part.last, sequences);
    }
  }
  return sequences;
}

bool HasCharacters(const CodePointSet& set) {
  return std::ranges::any_of(set, [](const CodePointRange& range) {
    return std::ranges::any_of(WithoutSurrogates(range),
                               [](const CodePointRange& part) { return part.first <= part.last; });
  });
}

}  // namespace troupe
