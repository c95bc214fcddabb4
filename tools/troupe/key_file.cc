#include "troupe/key_file.h"

#include <algorithm>

#include "troupe/text_input.h"

namespace troupe {

Result<std::vector<std::string>> ParseKeys(const std::string& path, std::string_view text) {
  constexpr std::string_view kAround = " \t\r\v\f";
  std::vector<std::string> keys;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    line.remove_prefix(std::min(line.find_first_not_of(kAround), line.size()));
    line = line.substr(0, line.find_last_not_of(kAround) + 1);
    if (!line.empty()) keys.emplace_back(line);
  }
  if (keys.empty()) return InvalidArgument("{}: no key in it, expected one a line", path);
  return keys;
}

Result<std::vector<std::string>> ReadKeys(const std::string& path) {
  constexpr std::size_t kMostBytes = 1 << 16;
  TROUPE_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path, kMostBytes));
  return ParseKeys(path, text);
}

}  // namespace troupe
