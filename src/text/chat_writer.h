// What the renderers of chat prompts share: roles, and a list of segments that grows.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/text_segment.h"

namespace troupe {

enum class ChatRole { kSystem, kUser, kAssistant };

struct ChatTurn {
  ChatRole role;
  std::string_view content;
};

class ChatWriter {
 public:
  void Template(std::string_view text) { Append(text, true); }
  void Content(std::string_view text) { Append(text, false); }
  std::vector<TextSegment> Take() && { return std::move(segments_); }

 private:
  void Append(std::string_view text, bool is_template) {
    if (text.empty()) return;
    if (segments_.empty() || segments_.back().is_template != is_template) {
      segments_.push_back({.text = "", .is_template = is_template});
    }
    segments_.back().text += text;
  }

  std::vector<TextSegment> segments_;
};

inline std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\n\v\f\r";
  const std::size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  text.remove_prefix(begin);
  const std::size_t last = text.find_last_not_of(kBlanks);
  return last == std::string_view::npos ? text : text.substr(0, last + 1);
}

}  // namespace troupe
