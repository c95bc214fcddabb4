// A text without the blanks around it.
#pragma once

#include <string_view>

namespace troupe {

inline constexpr std::string_view kBlanks = " \t\r\v\f";

inline std::string_view Trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

}  // namespace troupe
