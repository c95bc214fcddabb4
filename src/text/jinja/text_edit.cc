#include "text/jinja/text_edit.h"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>

#include "text/jinja/characters.h"
#include "text/utf8.h"

namespace troupe::jinja {
namespace {

void AppendUpper(char32_t c, bool title, std::string& out) {
  if (c == 0xDF) {
    out += title ? "Ss" : "SS";
  } else {
    AppendUtf8(UpperOf(c), out);
  }
}

// Where the character ends at which `end` stands, begins.
std::size_t StartBefore(std::string_view text, std::size_t end) {
  std::size_t at = end - 1;
  while (at > 0 && end - at < 4 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at + CharacterLength(text, at) == end ? at : end - 1;
}

// The characters of a set; blanks if there is none.
class CharacterSet {
 public:
  explicit CharacterSet(std::optional<std::string_view> set) : is_blanks_(!set) {
    for (std::size_t at = 0; set && at < set->size();) {
      const std::size_t length = CharacterLength(*set, at);
      characters_.insert(set->substr(at, length));
      at += length;
    }
  }

  bool Has(std::string_view text, std::size_t at, std::size_t length) const {
    if (is_blanks_) return IsSpace(CharacterAt(text, at));
    return characters_.count(text.substr(at, length)) > 0;
  }

 private:
  bool is_blanks_;
  std::unordered_set<std::string_view> characters_;
};

}  // namespace

MarkedText Strip(const MarkedText& text, std::optional<std::string_view> set, Sides sides) {
  const CharacterSet stripped(set);
  const std::string_view bytes = text.bytes();
  std::size_t begin = 0, end = bytes.size();
  while (sides != Sides::kRight && begin < end) {
    const std::size_t length = CharacterLength(bytes, begin);
    if (!stripped.Has(bytes, begin, length)) break;
    begin += length;
  }
  while (sides != Sides::kLeft && begin < end) {
    const std::size_t start = StartBefore(bytes, end);
    if (!stripped.Has(bytes, start, end - start)) break;
    end = start;
  }
  return text.Slice(begin, end - begin);
}

MarkedText ChangeCase(const MarkedText& text, Case to) {
  MarkedText out;
  bool begins = true;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = CharacterLength(text.bytes(), at);
    const char32_t c = CharacterAt(text.bytes(), at);
    std::string changed;
    const bool titled = begins && (to == Case::kTitle || to == Case::kCapitalized);
    if (c == 0xFFFD) {
      changed = text.bytes().substr(at, length);
    } else if (to == Case::kUpper || titled) {
      AppendUpper(c, titled, changed);
    } else {
      AppendUtf8(LowerOf(c), changed);
    }
    out.Append(changed, text.OriginAt(at));
    begins = to == Case::kTitle && !IsCased(c);
    at += length;
  }
  return out;
}

MarkedText TitleWords(const MarkedText& text) {
  constexpr std::string_view kBefore = "-({[<";
  MarkedText out;
  bool begins = true;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = CharacterLength(text.bytes(), at);
    const char32_t c = CharacterAt(text.bytes(), at);
    const MarkedText character = text.Slice(at, length);
    out.Append(ChangeCase(character, begins ? Case::kUpper : Case::kLower));
    begins =
        IsSpace(c) || (c < 0x80 && kBefore.find(static_cast<char>(c)) != std::string_view::npos);
    at += length;
  }
  return out;
}

MarkedText EscapeHtml(const MarkedText& text) {
  constexpr std::string_view kSpecial = "&<>'\"";
  constexpr std::string_view kEscapes[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
  MarkedText out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::size_t known = kSpecial.find(text.bytes()[at]);
    if (known == std::string_view::npos) {
      out.AppendSlice(text, at, 1);
    } else {
      out.Append(kEscapes[known], text.OriginAt(at));
    }
  }
  return out;
}

Result<MarkedText> Replace(const MarkedText& text, const MarkedText& old_part,
                           const MarkedText& new_part, std::int64_t most, Meter& meter) {
  const std::string& bytes = text.bytes();
  MarkedText out;
  std::size_t done = 0;
  TROUPE_RETURN_IF_ERROR(meter.Searches(bytes.size(), old_part.size()));
  for (std::size_t at = 0; most != 0 && at <= bytes.size(); --most) {
    const std::size_t found = bytes.find(old_part.bytes(), at);
    if (found == std::string::npos) break;
    if (out.size() + new_part.size() > meter.limits().string_bytes) {
      return meter.MakesString(out.size() + new_part.size());
    }
    out.AppendSlice(text, done, found - done);
    out.Append(new_part);
    done = found + old_part.size();
    // Nothing is found at every character's beginning, and at the end.
    at = !old_part.empty()      ? done
         : found < bytes.size() ? found + CharacterLength(bytes, found)
                                : bytes.size() + 1;
  }
  out.AppendSlice(text, done, bytes.size() - done);
  TROUPE_RETURN_IF_ERROR(meter.MakesString(out.size()));
  return out;
}

std::vector<MarkedText> SplitAtBlanks(const MarkedText& text, std::int64_t most, bool from_right) {
  const std::string_view bytes = text.bytes();
  std::vector<std::pair<std::size_t, std::size_t>> words;
  for (std::size_t at = 0, begin = 0; at <= bytes.size();) {
    const bool ends = at == bytes.size() || IsSpace(CharacterAt(bytes, at));
    if (ends && at > begin) words.emplace_back(begin, at);
    if (words.size() > kMostParts) break;
    at += at == bytes.size() ? 1 : CharacterLength(bytes, at);
    if (ends) begin = at;
  }
  if (most >= 0 && words.size() > static_cast<std::size_t>(most)) {
    // What is not divided is one part, with the blanks at its far end.
    const auto divisions = static_cast<std::ptrdiff_t>(most);
    if (from_right) {
      words.erase(words.begin(), words.end() - divisions - 1);
      words.front().first = 0;
    } else {
      words.erase(words.begin() + divisions + 1, words.end());
      words.back().second = bytes.size();
    }
  }
  std::vector<MarkedText> parts;
  for (const auto& [begin, end] : words) parts.push_back(text.Slice(begin, end - begin));
  return parts;
}

std::vector<MarkedText> SplitAt(const MarkedText& text, std::string_view separator,
                                std::int64_t most, bool from_right) {
  const std::string_view bytes = text.bytes();
  std::vector<MarkedText> parts;
  if (!from_right) {
    std::size_t begin = 0;
    for (; most != 0 && parts.size() <= kMostParts; --most) {
      const std::size_t found = bytes.find(separator, begin);
      if (found == std::string_view::npos) break;
      parts.push_back(text.Slice(begin, found - begin));
      begin = found + separator.size();
    }
    parts.push_back(text.Slice(begin, bytes.size() - begin));
    return parts;
  }
  std::size_t end = bytes.size();
  for (; most != 0 && end >= separator.size() && parts.size() <= kMostParts; --most) {
    const std::size_t found = bytes.rfind(separator, end - separator.size());
    if (found == std::string_view::npos) break;
    const std::size_t begin = found + separator.size();
    parts.push_back(text.Slice(begin, end - begin));
    end = found;
  }
  parts.push_back(text.Slice(0, end));
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<MarkedText> SplitLines(const MarkedText& text, bool keep_ends) {
  const std::string_view bytes = text.bytes();
  std::vector<MarkedText> lines;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < bytes.size() && lines.size() <= kMostParts;) {
    const std::size_t length = CharacterLength(bytes, at);
    if (!IsLineEnd(CharacterAt(bytes, at))) {
      at += length;
      continue;
    }
    const bool is_pair = bytes.substr(at, 2) == "\r\n";
    const std::size_t next = at + (is_pair ? 2 : length);
    lines.push_back(text.Slice(begin, (keep_ends ? next : at) - begin));
    begin = at = next;
  }
  if (begin < bytes.size()) lines.push_back(text.Slice(begin, bytes.size() - begin));
  return lines;
}

}  // namespace troupe::jinja
