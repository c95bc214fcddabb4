// The characters that come from a terminal, with pasted text told from typed text: a line end
// inside a paste is a part of the message and does not send it. Terminals that know bracketed paste
// (kPasteOn) mark one; of others a line end counts as pasted if more has come with it. Pure.
#pragma once

#include <deque>
#include <optional>
#include <string_view>

namespace troupe {

class TypedCharacters {
 public:
  static constexpr std::string_view kPasteOn = "\033[?2004h", kPasteOff = "\033[?2004l";
  // Stands for a line end in pasted text, and is shown as such.
  static constexpr char32_t kLineEnd = U'\u240a';

  void Push(std::string_view bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }

  // The next one. Nothing: what is there may go on. `all`: nothing has come for a while, so that
  // what is there is all of it.
  std::optional<char32_t> Next(bool all);
  bool empty() const { return bytes_.empty(); }
  void Clear();

 private:
  // Takes a mark from the front. Nothing: it may be one, and not all of it is there.
  std::optional<bool> TakeMark(std::string_view mark);
  std::optional<char32_t> Take(bool all);

  std::deque<char> bytes_;
  bool pasting_ = false;
};

}  // namespace troupe
