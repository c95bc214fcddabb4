// What a simulation tells: latencies by server, what ran where, how it went over time.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "placement/migration.h"

namespace troupe {

// Count, mean, greatest and quantiles of times between a microsecond and 10^7 s, in steps of 3 %:
// the memory does not grow with the count.
class TimeHistogram {
 public:
  void Note(double seconds) {
    ++count_;
    sum_ += seconds;
    greatest_ = seconds > greatest_ ? seconds : greatest_;
    const double step = std::log(seconds < 1e-6 ? 1e-6 : seconds) - std::log(1e-6);
    const auto bucket = static_cast<std::size_t>(step / kStep);
    ++buckets_[bucket < buckets_.size() ? bucket : buckets_.size() - 1];
  }
  std::uint64_t count() const { return count_; }
  double mean() const { return count_ > 0 ? sum_ / static_cast<double>(count_) : 0; }
  double greatest() const { return greatest_; }
  double Quantile(double q) const {
    const double wanted = q * static_cast<double>(count_);
    double seen = 0;
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      seen += static_cast<double>(buckets_[i]);
      if (seen >= wanted && seen > 0) {
        return std::fmin(greatest_, 1e-6 * std::exp((static_cast<double>(i) + 0.5) * kStep));
      }
    }
    return greatest_;
  }

 private:
  static constexpr double kStep = 0.03;
  std::uint64_t count_ = 0;
  double sum_ = 0, greatest_ = 0;
  std::array<std::uint64_t, 1000> buckets_{};
};

// Of a server with a disk of its own.
struct DiskResult {
  std::uint64_t passes = 0;
  std::uint64_t parts = 0;       // of passes: prompts that took part in one
  std::uint64_t loads = 0;       // of experts, from the disk
  std::uint64_t ahead = 0;       // of them before they were asked for
  std::uint64_t slot_hits = 0;   // experts asked for that a free slot had
  std::uint64_t late_calls = 0;  // others or the disk were asked in their place
  std::uint64_t called_off = 0;  // calls that nobody waited for any more
  std::uint64_t rested = 0;      // layers that asked nobody, since it had not paid
  double busy_seconds = 0;       // of the disk

  DiskResult& operator+=(const DiskResult& more) {
    passes += more.passes;
    parts += more.parts;
    loads += more.loads;
    ahead += more.ahead;
    slot_hits += more.slot_hits;
    late_calls += more.late_calls;
    called_off += more.called_off;
    rested += more.rested;
    busy_seconds += more.busy_seconds;
    return *this;
  }
  bool operator==(const DiskResult&) const = default;
};

struct ServerResult {
  TimeHistogram latency;                // from a prompt's arrival to its last token
  TimeHistogram wait;                   // of it, until its turn came
  std::uint64_t local = 0, remote = 0;  // (token, expert) pairs of its own users
  std::uint64_t loaded = 0;             // the same, whose experts had to be loaded first
  double busy_seconds = 0;              // of its devices together
  double bytes_sent = 0;
  std::optional<DiskResult> disk;  // if it has one of its own
};

struct TimelineSample {  // what happened since the sample before
  double seconds = 0;
  std::uint64_t local = 0, remote = 0;
  std::uint64_t answered = 0;
  double latency_sum = 0;
};

struct MigrationRecord {
  double seconds = 0;
  MigrationDecision decision;
  std::uint32_t loads = 0, staged = 0, undone = 0;
  double finished_seconds = 0;
  // That experts took on links, and then devices to load them: of those that have come.
  double fetching_seconds = 0, loading_seconds = 0;
};

struct SimulationResult {
  std::vector<ServerResult> servers;
  TimeHistogram latency;
  std::vector<TimelineSample> timeline;
  std::vector<MigrationRecord> migrations;  // all that were considered
  double seconds = 0;                       // until the last answer
  std::uint64_t losses = 0;                 // of servers
  std::uint64_t begun_again = 0;            // prompts whose server was lost while it worked on them
  std::uint64_t unanswered_calls = 0;       // to servers that were lost
  std::uint64_t events = 0;
  std::uint64_t most_links = 0;        // between servers in use at once
  std::uint64_t most_in_flight = 0;    // prompts, waiting ones too, calls and events at once
  double seconds_per_remote_call = 0;  // a (token, expert) pair, more than a local one

  double LocalRatio() const {
    double local = 0, all = 0;
    for (const ServerResult& server : servers) {
      local += static_cast<double>(server.local);
      all += static_cast<double>(server.local + server.remote + server.loaded);
    }
    return all > 0 ? local / all : 1;
  }
};

}  // namespace troupe
