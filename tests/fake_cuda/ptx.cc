#include "fake_cuda/ptx.h"

#include <charconv>

namespace troupe {
namespace {

constexpr auto kNowhere = std::string_view::npos;

std::size_t NumberBehind(std::string_view text, std::string_view word) {
  std::size_t number = 0;
  const std::size_t at = text.find(word);
  if (at == kNowhere) return 0;
  const char* const begin = text.data() + at + word.size();
  std::from_chars(begin, text.data() + text.size(), number);
  return number;
}

// Of ".param .u64 .ptr .align 1 Product_param_0" 8.
std::size_t BytesOf(std::string_view parameter) {
  for (const char* const type : {".u", ".b", ".s", ".f"}) {
    if (const std::size_t bits = NumberBehind(parameter, type); bits != 0) return bits / 8;
  }
  return 0;
}

PtxEntry EntryOf(std::string_view text) {
  const std::size_t open = text.find('('), close = text.find(')'), body = text.find('{');
  PtxEntry entry{.name = std::string(text.substr(0, open))};
  if (close == kNowhere || body == kNowhere) return entry;
  std::string_view parameters = text.substr(open, close - open);
  constexpr std::string_view kParameter = ".param ";
  for (std::size_t at = parameters.find(kParameter); at != kNowhere;
       at = parameters.find(kParameter)) {
    parameters.remove_prefix(at + kParameter.size());
    entry.parameters.push_back(BytesOf(parameters.substr(0, parameters.find(','))));
  }
  entry.most_items =
      static_cast<std::uint32_t>(NumberBehind(text.substr(close, body - close), ".maxntid "));
  return entry;
}

}  // namespace

std::vector<PtxEntry> ReadPtx(std::string_view text) {
  std::vector<PtxEntry> entries;
  if (text.find(".version ") == kNowhere || text.find(".target ") == kNowhere ||
      NumberBehind(text, ".address_size ") != 64) {
    return entries;
  }
  constexpr std::string_view kEntry = ".entry ";
  for (std::size_t at = text.find(kEntry); at != kNowhere; at = text.find(kEntry)) {
    text.remove_prefix(at + kEntry.size());
    entries.push_back(EntryOf(text));
  }
  return entries;
}

}  // namespace troupe
