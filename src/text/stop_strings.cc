#include "text/stop_strings.h"

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

// The table of Knuth, Morris and Pratt.
std::vector<std::size_t> Fallbacks(std::string_view text) {
  std::vector<std::size_t> fallback(text.size(), 0);
  for (std::size_t i = 1, matched = 0; i < text.size(); ++i) {
    while (matched > 0 && text[i] != text[matched]) matched = fallback[matched - 1];
    if (text[i] == text[matched]) ++matched;
    fallback[i] = matched;
  }
  return fallback;
}

}  // namespace

StopMatcher::StopMatcher(const std::vector<std::string>& stops) {
  for (const std::string& text : stops) {
    if (!text.empty()) stops_.push_back({.text = text, .fallback = Fallbacks(text)});
  }
}

void StopMatcher::Advance(Stop& stop, char next) {
  while (stop.matched > 0 && stop.text[stop.matched] != next) {
    stop.matched = stop.fallback[stop.matched - 1];
  }
  if (stop.text[stop.matched] == next) ++stop.matched;
}

std::string StopMatcher::Push(std::string_view piece) {
  std::string shown;
  for (const char next : piece) {
    if (found_.has_value()) break;
    held_ += next;
    const Stop* complete = nullptr;
    std::size_t longest_beginning = 0;
    for (Stop& stop : stops_) {
      Advance(stop, next);
      longest_beginning = std::max(longest_beginning, stop.matched);
      const bool is_complete = stop.matched == stop.text.size();
      if (is_complete && (complete == nullptr || stop.text.size() > complete->text.size())) {
        complete = &stop;
      }
    }
    // What lies before the longest beginning of a stop string can be part of none.
    const std::size_t ends = complete != nullptr ? complete->text.size() : longest_beginning;
    shown.append(held_, 0, held_.size() - ends);
    held_.erase(0, held_.size() - ends);
    if (complete != nullptr) {
      found_ = complete->text;
      held_.clear();
    }
  }
  return shown;
}

std::string StopMatcher::Flush() { return std::exchange(held_, {}); }

}  // namespace troupe
