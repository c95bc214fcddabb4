// Reads and writes UTF-8, character by character, as Unicode's table of well-formed sequences has
// it: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

struct Utf8Prefix {
  enum class State {
    kValid,     // `length` bytes are one character
    kInvalid,   // `length` bytes (at least one) can be part of no character
    kCutShort,  // the text ends, `length` bytes on, before its first character does
  };
  State state;
  std::size_t length;
};

// Looks at the first character of a text that is not empty.
Utf8Prefix ReadUtf8(std::string_view text);

// The position of the first byte that belongs to no character.
std::optional<std::size_t> FindInvalidUtf8(std::string_view text);

// The character that a text of one valid character writes, and the other way.
char32_t DecodeUtf8(std::string_view character);
void AppendUtf8(char32_t character, std::string& out);

}  // namespace troupe
