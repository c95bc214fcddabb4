#include "text/jinja/string_literal.h"

#include <algorithm>
#include <charconv>

#include "text/utf8.h"

namespace troupe::jinja {
namespace {

// The character whose number the first `count` digits write.
Result<char32_t> ReadCode(std::string_view text, std::size_t count, int base) {
  unsigned code = 0;
  const std::string_view digits = text.substr(0, count);
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), code, base);
  const auto used = static_cast<std::size_t>(read.ptr - digits.data());
  if (read.ec != std::errc() || used != count) {
    return InvalidArgument("an escape of fewer than {} digits in a string", count);
  }
  if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
    return InvalidArgument("an escape of no character in a string");
  }
  return static_cast<char32_t>(code);
}

std::size_t OctalDigits(std::string_view text) {
  std::size_t count = 0;
  while (count < std::min<std::size_t>(3, text.size()) && text[count] >= '0' &&
         text[count] <= '7') {
    ++count;
  }
  return count;
}

}  // namespace

Result<std::string> ReadStringLiteral(std::string_view inside) {
  constexpr std::string_view kLetters = "ntrabfv\\'\"";
  constexpr std::string_view kMeanings = "\n\t\r\a\b\f\v\\'\"";
  std::string out;
  for (std::size_t at = 0; at < inside.size();) {
    if (inside[at] != '\\') {
      out += inside[at++];
      continue;
    }
    if (++at == inside.size()) return InvalidArgument("a '\\' at the end of a string");
    const char letter = inside[at];
    const std::size_t known = kLetters.find(letter);
    const std::size_t octal = OctalDigits(inside.substr(at));
    if (letter == '\n') {  // a line that goes on
      ++at;
    } else if (known != kLetters.npos) {
      out += kMeanings[known];
      ++at;
    } else if (octal > 0) {
      TROUPE_ASSIGN_OR_RETURN(const char32_t code, ReadCode(inside.substr(at), octal, 8));
      AppendUtf8(code, out);
      at += octal;
    } else if (letter == 'x' || letter == 'u' || letter == 'U') {
      const std::size_t count = letter == 'x' ? 2 : letter == 'u' ? 4 : 8;
      TROUPE_ASSIGN_OR_RETURN(const char32_t code, ReadCode(inside.substr(at + 1), count, 16));
      AppendUtf8(code, out);
      at += 1 + count;
    } else if (letter == 'N') {
      return Error(Code::kUnimplemented, "a character by its name in a string");
    } else {
      out += '\\';
    }
  }
  return out;
}

}  // namespace troupe::jinja
