// How fast the link to a cloud is, as requests of HTTP see it.
#pragma once

#include "base/status.h"
#include "troupe/asked_server.h"

namespace troupe {

struct LinkSpeedFound {
  double round_trip_seconds = 0;  // of a small request, with its connection
  double up_bytes_per_second = 0, down_bytes_per_second = 0;
};

// Some requests, and two of a quarter of a megabyte.
Result<LinkSpeedFound> MeasureLink(const AskedServer& server);

}  // namespace troupe
