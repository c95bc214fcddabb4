#include "troupe/text_input.h"

#include <cctype>
#include <charconv>
#include <iostream>
#include <span>

#include "io/file.h"

namespace troupe {

Result<std::vector<TokenId>> ParseTokenIds(const std::string& text) {
  std::vector<TokenId> ids;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    if (*at == ',' || std::isspace(static_cast<unsigned char>(*at))) {
      ++at;
      continue;
    }
    TokenId id = 0;
    const auto [next, error] = std::from_chars(at, end, id);
    const bool ends_well =
        next == end || *next == ',' || std::isspace(static_cast<unsigned char>(*next));
    if (error != std::errc() || !ends_well || id < 0) {
      const std::size_t shown = std::min<std::size_t>(12, static_cast<std::size_t>(end - at));
      return InvalidArgument("token ids, place {}: found '{}', expected a number and a comma",
                             at - text.data(), std::string_view(at, shown));
    }
    ids.push_back(id);
    at = next;
  }
  return ids;
}

Result<std::string> ReadTextFile(const std::string& path, std::size_t most) {
  const auto too_long = [&] {
    return Error(Code::kResourceExhausted, "{}: more than {} bytes, which is the most that fits",
                 path, most);
  };
  if (path == "-") {
    std::string text;
    for (char piece[4096]; std::cin.read(piece, sizeof(piece)) || std::cin.gcount() > 0;) {
      text.append(piece, static_cast<std::size_t>(std::cin.gcount()));
      if (text.size() > most) return too_long();
    }
    return text;
  }
  TROUPE_ASSIGN_OR_RETURN(const ReadFile file, ReadFile::Open(path));
  if (file.size() > most) return too_long();
  std::string text(file.size(), '\0');
  TROUPE_RETURN_IF_ERROR(file.ReadAt(0, std::as_writable_bytes(std::span(text))));
  return text;
}

}  // namespace troupe
