// A text that is read from its beginning on, as far as somebody wants it: a file, a pipe, a device,
// or standard input. What is read is kept; what it may take is the caller's to say.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "base/fd.h"
#include "base/status.h"

namespace troupe {

class TextSource {
 public:
  static Result<TextSource> Open(const std::string& path);  // "-" is standard input

  // Reads on until this number of bytes is there, or the text has ended.
  Status ReadTo(std::size_t bytes);

  const std::string& text() const { return text_; }
  bool ended() const { return ended_; }  // there is no more than text()
  const std::string& path() const { return path_; }

  std::string TakeText() { return std::move(text_); }

 private:
  TextSource(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  std::string path_;
  UniqueFd fd_;
  std::string text_;
  bool ended_ = false;
};

// How many bytes of a text are whole characters, if it may have been cut within its last one.
std::size_t WholeCharacters(std::string_view text);

}  // namespace troupe
