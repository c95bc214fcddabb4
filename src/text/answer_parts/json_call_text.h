// A call as one JSON object with "name" and "arguments" (or "parameters"), read from the front of a
// text that may go on. For the readers of calls.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "text/answer_parts/part_scan.h"

namespace troupe {

// Reads tokens of JSON, one after the other. Each answer is kMore as long as the token may go on.
class JsonFront {
 public:
  JsonFront(std::string_view text, bool ended) : text_(text), ended_(ended) {}

  Scan Skip(std::string_view mark);  // after blanks
  Scan String(std::string& out);
  std::size_t at() const { return at_; }

 private:
  std::string_view text_;
  bool ended_;
  std::size_t at_ = 0;
};

struct JsonCallHead {
  std::string name;
  std::size_t length = 0;  // up to the '{' of the arguments
};

// {"name": "f", "arguments": {
Scan ReadCallHead(std::string_view text, bool ended, JsonCallHead& head);

struct JsonCall {
  std::string name, arguments;
};

// Of an object whose members may come in any order. Nothing: it is no call.
std::optional<JsonCall> ReadWholeCall(std::string_view object);

}  // namespace troupe
