// Reads the stream of a completion as it comes: when there was text, how many tokens the server
// counted, how it ended. The text itself is not kept. Knows no socket and no clock. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"

namespace troupe {

class CompletionEvents {
 public:
  // Bytes of the stream, cut anywhere. `now`: when they came.
  void Take(std::string_view bytes, double now);

  const std::vector<double>& text_times() const { return text_times_; }  // of events with text
  std::size_t prompt_tokens() const { return prompt_tokens_; }           // 0: the server said none
  std::size_t tokens() const { return tokens_; }  // generated; as the server says, or else events
  // kInternal: the server told of an error. kDataLoss: events that are none, or no last one.
  Status End() const;

 private:
  void TakeLine(std::string_view line, double now);
  void TakeEvent(const Json& event, double now);

  std::string line_;  // that has no end yet
  std::vector<double> text_times_;
  std::size_t prompt_tokens_ = 0, tokens_ = 0;
  bool done_ = false;
  Status failed_;
};

}  // namespace troupe
