#include "troupe/typed_characters.h"

#include <algorithm>
#include <string>

#include "text/utf8.h"

namespace troupe {
namespace {

constexpr std::string_view kPasteBegins = "\033[200~", kPasteEnds = "\033[201~";

}  // namespace

void TypedCharacters::Clear() {
  bytes_.clear();
  pasting_ = false;
}

std::optional<bool> TypedCharacters::TakeMark(std::string_view mark) {
  const std::size_t common = std::min(mark.size(), bytes_.size());
  if (!std::equal(mark.begin(), mark.begin() + static_cast<std::ptrdiff_t>(common),
                  bytes_.begin())) {
    return false;
  }
  if (common < mark.size()) return std::nullopt;
  bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(common));
  return true;
}

// One UTF-8 character, or the replacement of a byte that belongs to none.
std::optional<char32_t> TypedCharacters::Take(bool all) {
  constexpr std::size_t kLongest = 4;
  const std::string front(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(
                                                               std::min(kLongest, bytes_.size())));
  const Utf8Prefix prefix = ReadUtf8(front);
  if (prefix.state == Utf8Prefix::State::kCutShort && !all) return std::nullopt;
  bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(prefix.length));
  if (prefix.state != Utf8Prefix::State::kValid) return DecodeUtf8(kReplacementCharacter);
  return DecodeUtf8(std::string_view(front).substr(0, prefix.length));
}

std::optional<char32_t> TypedCharacters::Next(bool all) {
  while (!bytes_.empty()) {
    if (bytes_.front() == '\033') {
      const std::optional<bool> mark = TakeMark(pasting_ ? kPasteEnds : kPasteBegins);
      if (!mark && !all) return std::nullopt;
      if (mark && *mark) {
        pasting_ = !pasting_;
        continue;
      }
    }
    const std::optional<char32_t> taken = Take(all);
    if (!taken) return std::nullopt;
    const bool ends_line = *taken == '\r' || *taken == '\n';
    // Some terminals send both.
    if (*taken == '\r' && !bytes_.empty() && bytes_.front() == '\n') bytes_.pop_front();
    if (ends_line) return pasting_ || !bytes_.empty() ? kLineEnd : U'\n';
    // Control characters of a paste would be commands to the editor of lines.
    const bool control = *taken < 0x20 || (*taken >= 0x7f && *taken < 0xa0);
    if (pasting_ && control && *taken != '\t') continue;
    return taken;
  }
  return std::nullopt;
}

}  // namespace troupe
