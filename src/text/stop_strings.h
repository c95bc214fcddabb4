// Finds the texts at which generation stops, in text that arrives in pieces. A possible beginning
// of one is held back until it is known not to be one. How the text is cut into pieces never
// changes the result.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

class StopMatcher {
 public:
  // Empty strings are ignored.
  explicit StopMatcher(const std::vector<std::string>& stops);

  // The text that can be shown now. Once a stop string is complete the rest is dropped, and so is
  // all that is pushed later.
  std::string Push(std::string_view piece);

  // Ends the text: what was held back after all.
  std::string Flush();

  // The stop string that was found: the first to become complete, of several the longest.
  const std::optional<std::string>& found() const { return found_; }

 private:
  struct Stop {
    std::string text;
    std::vector<std::size_t> fallback;  // of each prefix: its longest proper suffix that is one too
    std::size_t matched = 0;
  };

  static void Advance(Stop& stop, char next);

  std::vector<Stop> stops_;
  std::string held_;
  std::optional<std::string> found_;
};

}  // namespace troupe
