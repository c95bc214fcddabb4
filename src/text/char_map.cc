#include "text/char_map.h"

#include <cstring>

#include "text/utf8.h"

namespace troupe {
namespace {

constexpr std::uint32_t kLeafBit = 1u << 8, kFarBit = 1u << 9, kValueBit = 1u << 31;

// From a unit to where its children are, by exclusive or with the byte that leads there.
std::size_t OffsetOf(std::uint32_t unit) {
  return std::size_t{unit >> 10} << ((unit & kFarBit) >> 6);
}

bool IsInsideCharacter(char c) { return (static_cast<std::uint8_t>(c) & 0xC0) == 0x80; }

}  // namespace

Result<CharMap> CharMap::Make(std::string_view compiled) {
  CharMap map;
  if (compiled.empty()) return map;
  std::uint32_t trie = 0;
  if (compiled.size() < sizeof(trie)) {
    return InvalidArgument("a character map of {} bytes, expected at least {}", compiled.size(),
                           sizeof(trie));
  }
  std::memcpy(&trie, compiled.data(), sizeof(trie));
  compiled.remove_prefix(sizeof(trie));
  if (trie == 0 || trie % sizeof(std::uint32_t) != 0 || trie > compiled.size()) {
    return InvalidArgument("a character map whose trie has {} bytes of {}", trie, compiled.size());
  }
  map.units_.resize(trie / sizeof(std::uint32_t));
  std::memcpy(map.units_.data(), compiled.data(), trie);
  map.texts_ = compiled.substr(trie);
  if (!map.texts_.empty() && map.texts_.back() != '\0') {
    return InvalidArgument("a character map whose last text has no end");
  }
  if (FindInvalidUtf8(map.texts_).has_value()) {
    return InvalidArgument("a character map of texts that are not valid UTF-8");
  }
  return map;
}

CharMap::Match CharMap::Longest(std::string_view text) const {
  Match best;
  if (units_.empty()) return best;
  std::size_t node = OffsetOf(units_[0]);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<std::uint8_t>(text[i]);
    node ^= byte;
    if (node >= units_.size()) break;
    const std::uint32_t unit = units_[node];
    if ((unit & (kValueBit | 0xFFu)) != byte) break;
    node ^= OffsetOf(unit);
    if ((unit & kLeafBit) == 0) continue;
    if (node >= units_.size()) break;
    const std::size_t begin = units_[node] & ~kValueBit;
    const bool cuts_character = i + 1 < text.size() && IsInsideCharacter(text[i + 1]);
    if (begin >= texts_.size() || IsInsideCharacter(texts_[begin]) || cuts_character) continue;
    best = {.length = i + 1, .to = texts_.c_str() + begin};
  }
  return best;
}

}  // namespace troupe
