#include "gguf/quoted.h"

#include <fmt/format.h>

#include <iterator>

namespace troupe {

std::string Quoted(std::string_view text) {
  constexpr std::size_t kMaxShown = 80;
  std::string quoted = "'";
  for (const char c : text.substr(0, kMaxShown)) {
    const bool printable = c >= 0x20 && c < 0x7f && c != '\'' && c != '\\';
    if (printable) {
      quoted += c;
    } else {
      fmt::format_to(std::back_inserter(quoted), "\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  if (text.size() > kMaxShown) quoted += "...";
  quoted += '\'';
  return quoted;
}

}  // namespace troupe
