#include "split/run_left.h"

#include <algorithm>

#include "runtime/batch_forecast.h"

namespace troupe {
namespace {

double Seconds(Nanos nanos) { return static_cast<double>(nanos) * 1e-9; }

}  // namespace

UnderWay AtTheEnd(const RunLeft& left, const EndBatch& batch, Nanos now) {
  UnderWay here{.place = Side::kEnd, .to_read = left.own_tokens};
  const double for_others = batch.read_seconds * static_cast<double>(left.tokens);
  const std::size_t before = left.runs + batch.others;
  here.waits = !left.begun && (left.tokens > 0 || before >= batch.sequences);
  if (here.waits) {
    here.wait_seconds =
        std::max(for_others, WaitSeconds(before, batch.sequences, batch.request_seconds));
    return here;
  }
  here.wait_seconds = for_others;
  if (left.tokens > 0) return here;
  // A pass tells of its rows when it is over.
  const auto tokens = static_cast<double>(left.own_tokens);
  const double read = std::clamp(Seconds(now - left.since) / batch.read_seconds, 0.0, tokens);
  here.to_read = static_cast<std::size_t>(tokens - read);
  return here;
}

UnderWay InTheCloud(const RunLeft& left, std::size_t tokens, Nanos now) {
  UnderWay there{.place = Side::kCloud};
  if (left.begun) return there;
  there.to_read = tokens;
  there.wait_seconds = std::max(Seconds(left.begins_at - now), 0.0);
  there.waits = there.wait_seconds > 0;
  return there;
}

Nanos NextTokenIn(const UnderWay& there, const PlaceCosts& costs) {
  constexpr double kLongest = 1e6;  // seconds
  const double seconds = there.wait_seconds + costs.link_seconds +
                         costs.ComputeSeconds({.read = there.to_read, .tokens = 1});
  return static_cast<Nanos>(std::min(seconds, kLongest) * 1e9);
}

}  // namespace troupe
