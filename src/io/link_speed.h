// The speed of the link between memory and the medium that holds the experts, and its text form on
// the command line.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace troupe {

struct LinkSpeed {
  double bytes_per_second = 0;  // 0: no limit
  double latency_seconds = 0;
};

// "500MiB", "2GiB/s", "2GiB/100us", "unlimited/1ms": bytes a second, and the latency if there is
// one (ns, us, ms, s).
Result<LinkSpeed> ParseLinkSpeed(std::string_view text);
std::string ToString(const LinkSpeed& link);

}  // namespace troupe
