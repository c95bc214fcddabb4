// Characters of a UTF-8 text as Python's str counts and changes them. Bytes that are not UTF-8
// count as one character for each unreadable sequence. Case and printability are those of ASCII,
// Latin, Greek, Cyrillic and Armenian; other scripts have no case here.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::jinja {

std::size_t CharacterLength(std::string_view text, std::size_t at);
std::size_t CountCharacters(std::string_view text);
// Where each character begins, and at last where the text ends.
std::vector<std::size_t> CharacterStarts(std::string_view text);
// U+FFFD for what is not UTF-8.
char32_t CharacterAt(std::string_view text, std::size_t at);

bool IsSpace(char32_t character);      // str.isspace
bool IsLineEnd(char32_t character);    // where str.splitlines divides
bool IsPrintable(char32_t character);  // str.isprintable
bool IsDigit(char32_t character);
bool IsLetter(char32_t character);

char32_t LowerOf(char32_t character);
char32_t UpperOf(char32_t character);
inline bool IsCased(char32_t character) {
  return LowerOf(character) != character || UpperOf(character) != character || character == 0xDF;
}

}  // namespace troupe::jinja
