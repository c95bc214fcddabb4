#include "troupe/message_lines.h"

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

constexpr std::string_view kQuotes = "\"\"\"";

}  // namespace

void MessageLines::Append(std::string_view text) {
  const std::size_t room = most_bytes_ - std::min(most_bytes_, text_.size());
  too_long_ = too_long_ || text.size() > room;
  text_ += text.substr(0, room);
}

void MessageLines::Clear() {
  text_.clear();
  open_ = quoted_ = too_long_ = false;
}

std::string MessageLines::Take() {
  open_ = quoted_ = false;
  return std::exchange(text_, {});
}

std::optional<std::string> MessageLines::Add(std::string_view line) {
  if (!open_) {
    too_long_ = false;
    if (line.starts_with(kQuotes)) {
      open_ = quoted_ = true;
      line.remove_prefix(kQuotes.size());
      if (line.empty()) return std::nullopt;  // the text begins on the next line
    }
  }
  if (quoted_) {
    if (line.ends_with(kQuotes)) {
      line.remove_suffix(kQuotes.size());
      Append(line);
      if (line.empty() && text_.ends_with('\n')) text_.pop_back();  // the quotes had it alone
      return Take();
    }
    Append(line);
    Append("\n");
    return std::nullopt;
  }
  open_ = line.ends_with('\\');
  if (open_) line.remove_suffix(1);
  Append(line);
  if (!open_) return Take();
  Append("\n");
  return std::nullopt;
}

}  // namespace troupe
