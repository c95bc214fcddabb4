// Small questions about a text of which the rest is still to come. An answer is kMore as long as it
// could change with what comes, so that no reader depends on where a text was cut.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace troupe {

enum class Scan { kYes, kNo, kMore };

// Whether the text begins with a mark.
inline Scan BeginsWith(std::string_view text, std::string_view mark, bool ended) {
  if (text.starts_with(mark)) return Scan::kYes;
  return !ended && mark.starts_with(text) ? Scan::kMore : Scan::kNo;
}

inline bool IsBlank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

inline std::size_t BlanksAt(std::string_view text, std::size_t at = 0) {
  std::size_t end = at;
  while (end < text.size() && IsBlank(text[end])) ++end;
  return end - at;
}

// Bytes at the end of the text with which the mark could begin.
inline std::size_t BeginningAtEnd(std::string_view text, std::string_view mark) {
  for (std::size_t n = std::min(text.size(), mark.size() - 1); n > 0; --n) {
    if (text.ends_with(mark.substr(0, n))) return n;
  }
  return 0;
}

// Follows a JSON object, array or the rest of one to its end, without asking whether it is valid.
class JsonExtent {
 public:
  explicit JsonExtent(int depth = 0) : depth_(depth) {}

  // Bytes of the text that belong to the value; it has ended if ended() says so.
  std::size_t Take(std::string_view text) {
    std::size_t i = 0;
    while (i < text.size() && !ended_) Step(text[i++]);
    return i;
  }
  bool ended() const { return ended_; }

 private:
  void Step(char c) {
    if (in_string_) {
      if (escaped_) {
        escaped_ = false;
      } else if (c == '\\') {
        escaped_ = true;
      } else if (c == '"') {
        in_string_ = false;
      }
      return;
    }
    if (c == '"') in_string_ = true;
    if (c == '{' || c == '[') ++depth_;
    if (c == '}' || c == ']') ended_ = --depth_ <= 0;
  }

  int depth_;
  bool in_string_ = false, escaped_ = false, ended_ = false;
};

}  // namespace troupe
