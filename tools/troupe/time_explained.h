// What was recorded of the last tokens' time (runtime/pass_times.h), for people: a text of one
// token, layer by layer, and a picture of the last ones.
#pragma once

#include <string>

#include "runtime/pass_times.h"

namespace troupe {

// What was read from, and how fast it is; 0: not known.
struct ReadFrom {
  std::string medium;
  double bytes_per_second = 0;
};

// How a token's time divides, and for each layer that waited what for, who had predicted it, and
// why it was not read earlier.
std::string ExplainTime(const TimedPass& pass, const ReadFrom& from);

// The last `most` passes, computing and the disk, one under the other.
std::string TimelineSvg(const PassTimes& times, std::size_t most, const std::string& model,
                        const ReadFrom& from);

}  // namespace troupe
