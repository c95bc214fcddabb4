#include "troupe/time_explained.h"

#include <fmt/core.h>
#include <troupe/pass_time.h>

#include <algorithm>

#include "plot/timeline.h"

namespace troupe {
namespace {

double Milliseconds(Nanos time) { return static_cast<double>(time) * 1e-6; }

PassTime Divided(const TimedPass& pass) {
  return SplitPassTime(static_cast<double>(pass.time.length()) * 1e-9,
                       static_cast<double>(pass.reading()) * 1e-9,
                       static_cast<double>(pass.stalled()) * 1e-9);
}

std::string ExplainMiss(const MissEvent& miss, const ReadFrom& from) {
  return fmt::format("      expert {}, {}{} from {}: waited {:.2f} of {:.2f} ms; {}\n",
                     miss.id.expert, ToString(miss.bytes), miss.low ? " (low copy)" : "",
                     from.medium, miss.waited_seconds * 1e3, miss.load_seconds * 1e3,
                     ToString(miss.foresight, miss.id.layer));
}

enum Doing : std::size_t { kComputing, kWaiting, kReading, kLyingReady };

std::vector<TimelineSpan> ComputingLane(const TimedPass& pass) {
  std::vector<TimelineSpan> lane;
  double at = 0;
  const double length = Milliseconds(pass.time.length());
  for (const TimeSpan& stall : pass.stalls) {
    const double begin = Milliseconds(stall.begin - pass.time.begin);
    const double end = Milliseconds(stall.end - pass.time.begin);
    lane.push_back({.begin = at, .end = begin, .kind = kComputing});
    lane.push_back({.begin = begin, .end = end, .kind = kWaiting});
    at = end;
  }
  lane.push_back({.begin = at, .end = length, .kind = kComputing});
  return lane;
}

// What has come is noticed when somebody looks: by the medium's speed it may have lain ready
// before.
std::vector<TimelineSpan> DiskLane(const TimedPass& pass, double bytes_per_second) {
  std::vector<TimelineSpan> lane;
  for (const ReadSpan& read : pass.reads) {
    const double begin = Milliseconds(read.time.begin - pass.time.begin);
    const double end = Milliseconds(read.time.end - pass.time.begin);
    double read_until = end;
    if (bytes_per_second > 0 && read.bytes > 0) {
      read_until = std::min(end, begin + 1e3 * static_cast<double>(read.bytes) / bytes_per_second);
    }
    lane.push_back({.begin = begin, .end = read_until, .kind = kReading});
    lane.push_back({.begin = read_until, .end = end, .kind = kLyingReady});
  }
  return lane;
}

TimelineRow RowOf(const TimedPass& pass, const ReadFrom& from) {
  TimelineRow row{.name = fmt::format("token {}", pass.number),
                  .note = {},
                  .lanes = {ComputingLane(pass), DiskLane(pass, from.bytes_per_second)},
                  .marks = {},
                  .length = Milliseconds(pass.time.length())};
  row.note = fmt::format("{:.1f} ms, waited {:.1f}", row.length, Milliseconds(pass.stalled()));
  for (const LayerTime& layer : pass.layers) {
    row.marks.push_back(Milliseconds(layer.time.begin - pass.time.begin));
  }
  return row;
}

}  // namespace

std::string ExplainTime(const TimedPass& pass, const ReadFrom& from) {
  const PassTime time = Divided(pass);
  std::string text = fmt::format(
      "token {} took {:.2f} ms: {:.2f} computing, {:.2f} computing while reading, {:.2f} waiting\n",
      pass.number, Milliseconds(pass.time.length()), 1e3 * time.computing_seconds,
      1e3 * time.overlapped_seconds, 1e3 * time.stall_seconds);
  text += fmt::format("  {:>5} {:>12} {:>10}\n", "layer", "computing ms", "waiting ms");
  if (!pass.layers.empty()) {
    text += fmt::format("  {:>5} {:>12.2f} {:>10.2f}\n", "-",
                        Milliseconds(pass.layers.front().time.begin - pass.time.begin), 0.0);
  }
  for (const LayerTime& layer : pass.layers) {
    text +=
        fmt::format("  {:>5} {:>12.2f} {:>10.2f}\n", layer.layer,
                    Milliseconds(layer.time.length() - layer.stalled), Milliseconds(layer.stalled));
    for (const MissEvent& miss : layer.misses) text += ExplainMiss(miss, from);
  }
  return text;
}

std::string TimelineSvg(const PassTimes& times, std::size_t most, const std::string& model,
                        const ReadFrom& from) {
  Timeline timeline{.title = "Computing and reading, token by token",
                    .subtitle = fmt::format("{}, from {}; a mark where a layer chose its experts",
                                            model, from.medium),
                    .x_label = "milliseconds",
                    .lanes = {"computing", "disk"},
                    .kinds = {{"computing", "#0072b2"},
                              {"waiting for a load", "#d55e00"},
                              {"reading", "#009e73"},
                              {"read, and not looked at (estimate)", "#e69f00"}},
                    .rows = {}};
  const std::size_t count = std::min(most, times.passes().size());
  for (std::size_t i = times.passes().size() - count; i < times.passes().size(); ++i) {
    timeline.rows.push_back(RowOf(times.passes()[i], from));
  }
  return ToSvg(timeline);
}

}  // namespace troupe
