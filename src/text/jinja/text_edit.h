// What Python's str does with a text: strip, split, replace, change of case. All keep the marks of
// the bytes that they keep. The sizes of results are checked by who calls, except where they say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "text/jinja/value.h"

namespace troupe::jinja {

// A text that divides into more is divided no further; no list may be that long.
inline constexpr std::size_t kMostParts = 1'000'000;

enum class Sides { kBoth, kLeft, kRight };

// Without the characters of `set` (blanks if none is given) at its ends.
MarkedText Strip(const MarkedText& text, std::optional<std::string_view> set, Sides sides);

enum class Case { kUpper, kLower, kTitle, kCapitalized };
MarkedText ChangeCase(const MarkedText& text, Case to);
// As the filter `title` does: a word begins behind a blank, a dash or an opening bracket.
MarkedText TitleWords(const MarkedText& text);

MarkedText EscapeHtml(const MarkedText& text);

// most: how many are replaced, or how often is divided; negative: all.
Result<MarkedText> Replace(const MarkedText& text, const MarkedText& old_part,
                           const MarkedText& new_part, std::int64_t most, Meter& meter);
std::vector<MarkedText> SplitAtBlanks(const MarkedText& text, std::int64_t most, bool from_right);
std::vector<MarkedText> SplitAt(const MarkedText& text, std::string_view separator,
                                std::int64_t most, bool from_right);
std::vector<MarkedText> SplitLines(const MarkedText& text, bool keep_ends);

}  // namespace troupe::jinja
