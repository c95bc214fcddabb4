// A part of a prompt and whether its author may use special tokens: a chat template may, the
// content of a message may not, or a user could forge the turns of others.
#pragma once

#include <string>

namespace troupe {

struct TextSegment {
  std::string text;
  bool is_template = false;  // special tokens written in it are special tokens

  bool operator==(const TextSegment&) const = default;
};

}  // namespace troupe
