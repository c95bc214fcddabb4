// Puts a message together from the lines that somebody types: one line most often, several where
// lines end with a backslash or stand between lines with """. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

class MessageLines {
 public:
  explicit MessageLines(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  // The message, if this line (without its end) is its last.
  std::optional<std::string> Add(std::string_view line);
  // A message has begun and not ended.
  bool open() const { return open_; }
  // Of the message under way or the last one: it has more than the most bytes, and what was beyond
  // them is not there.
  bool too_long() const { return too_long_; }
  // What has begun is forgotten.
  void Clear();
  // It is all there is: the input has ended.
  std::string Take();

 private:
  void Append(std::string_view text);

  std::size_t most_bytes_;
  std::string text_;
  bool open_ = false, quoted_ = false, too_long_ = false;
};

}  // namespace troupe
