#include "troupe/text_input.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "troupe/text_source.h"

namespace troupe {
namespace {

bool IsBlank(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

}  // namespace

Result<std::vector<TokenId>> ParseTokenIds(const std::string& text) {
  std::vector<TokenId> ids;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto skip_blanks = [end](const char* at) { return std::find_if_not(at, end, IsBlank); };
  for (const char* at = skip_blanks(begin); at != end;) {
    TokenId id = 0;
    const auto [next, error] = std::from_chars(at, end, id);
    const bool ends_well = next == end || *next == ',' || IsBlank(*next);
    if (error != std::errc() || !ends_well || id < 0) {
      const std::size_t shown = std::min<std::size_t>(12, static_cast<std::size_t>(end - at));
      return InvalidArgument(
          "token ids, place {}: found '{}', expected a number and a comma or blank", at - begin,
          std::string_view(at, shown));
    }
    ids.push_back(id);
    at = skip_blanks(next);
    if (at == end || *at != ',') continue;
    at = skip_blanks(at + 1);
    if (at == end) {
      return InvalidArgument("token ids: they end with a comma, expected a number behind it");
    }
  }
  return ids;
}

Result<std::string> ReadTextFile(const std::string& path, std::size_t most) {
  TROUPE_ASSIGN_OR_RETURN(TextSource source, TextSource::Open(path));
  TROUPE_RETURN_IF_ERROR(source.ReadTo(most < std::string().max_size() ? most + 1 : most));
  if (source.text().size() > most) {
    return Error(Code::kResourceExhausted, "{}: more than {} bytes, which is the most that fits",
                 source.path(), most);
  }
  return source.TakeText();
}

}  // namespace troupe
