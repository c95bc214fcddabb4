// What Echo (echo.h) judges by. These values were chosen by hand, looking at recorded routing;
// `troupe replay --echo` plays others, so that they can be chosen on other traces than those they
// are judged by. A run has these.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/status.h"

namespace troupe {

struct EchoSettings {
  std::size_t matches = 64;    // past tokens that are listened to
  double recent_share = 0.25;  // of recent use in an expert's value
  double recent_kept = 0.95;   // of a use, for the next token
  double half_after = 3;       // steps after the next at which a use is worth half

  bool operator==(const EchoSettings&) const = default;
};

// "64,0.25,0.95,3", in that order.
Result<EchoSettings> ParseEchoSettings(std::string_view text);
std::string ToString(const EchoSettings& settings);

}  // namespace troupe
