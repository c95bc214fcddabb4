#include "troupe/device_link.h"

#include <algorithm>
#include <limits>
#include <string>

#include "base/clock.h"
#include "split/wire/cloud_hello.h"

namespace troupe {
namespace {

constexpr int kRounds = 3;
constexpr std::size_t kBytes = 1 << 18;

Result<double> SecondsOf(const AskedServer& server, const HttpRequest& request, std::string& body) {
  const Stopwatch watch;
  TROUPE_ASSIGN_OR_RETURN(body, AskServer(server, request));
  return watch.Seconds();
}

// Of one direction, whose request took that much longer than a small one.
double Speed(double seconds, double small) {
  constexpr double kLeast = 1e-6;
  return static_cast<double>(kBytes) / std::max(seconds - small, kLeast);
}

}  // namespace

Result<LinkSpeedFound> MeasureLink(const AskedServer& server) {
  LinkSpeedFound found{.round_trip_seconds = std::numeric_limits<double>::infinity()};
  std::string body;
  for (int round = 0; round < kRounds; ++round) {
    TROUPE_ASSIGN_OR_RETURN(
        const double seconds,
        SecondsOf(server, {.method = "GET", .path = "/split/hello", .headers = {}, .body = ""},
                  body));
    TROUPE_RETURN_IF_ERROR(DecodeCloudHello(body).status());
    found.round_trip_seconds = std::min(found.round_trip_seconds, seconds);
  }
  const auto measure = [&](std::size_t up, std::size_t down) -> Result<double> {
    return SecondsOf(server,
                     {.method = "POST",
                      .path = "/split/measure",
                      .headers = {},
                      .body = "{\"bytes\":" + std::to_string(down) + ",\"filler\":\"" +
                              std::string(up, 'x') + "\"}"},
                     body);
  };
  TROUPE_ASSIGN_OR_RETURN(const double up, measure(kBytes, 0));
  TROUPE_ASSIGN_OR_RETURN(const double down, measure(0, kBytes));
  found.up_bytes_per_second = Speed(up, found.round_trip_seconds);
  found.down_bytes_per_second = Speed(down, found.round_trip_seconds);
  return found;
}

}  // namespace troupe
