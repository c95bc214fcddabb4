// What the live page shows, as the JSON of its events (docs/formats/live.md). Pure.
#pragma once

#include <troupe/model.h>

#include <string>
#include <string_view>

#include "server/recent_times.h"

namespace troupe {

// What stays as it is: the model, how memory is divided, and whether there is a /cluster.
std::string LiveFacts(std::string_view model, const Plan& plan, bool is_node);

struct LiveTimes {
  double now = 0;  // seconds, by a clock that never goes back
  RecentTimes::Percentiles first_token, between_tokens;
};
// What changes: sums, whose differences are rates, and what is so at this moment.
std::string LiveState(const Metrics& metrics, const ModelState& state, const LiveTimes& times);

}  // namespace troupe
