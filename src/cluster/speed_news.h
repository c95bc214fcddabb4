// Which links and whether the own disk have become far slower than they usually are, or are again
// as fast: told once each, to be read later where somebody asks what has happened. Pure.
#pragma once

#include <fmt/core.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/wire/report.h"

namespace troupe {

// How long one thing takes, again and again. What is slow from the beginning is usual.
class UsualTime {
 public:
  enum class Change { kNone, kSlow, kBack };

  Change Add(double seconds, Nanos now) {
    if (seconds <= 0 || seconds == last_) return Change::kNone;  // nothing was measured anew
    last_ = seconds;
    if (slow_) {
      if (seconds > kAgain * usual()) return Change::kNone;
      slow_ = false;
      told_ = now;
      return Change::kBack;
    }
    if (!IsSlow(seconds)) {
      late_ = 0;
      Learn(seconds);
      return Change::kNone;
    }
    if (++late_ < kLate || (told_ > 0 && now - told_ < kRest)) return Change::kNone;
    late_ = 0;
    slow_ = true;
    return Change::kSlow;
  }
  double usual() const { return std::exp(mean_); }
  bool slow() const { return slow_; }

 private:
  static constexpr double kSlower = 4, kAgain = 2;
  static constexpr double kLeast = 5e-3;  // seconds; a machine that is busy takes as long
  static constexpr int kLearning = 4;     // measurements, before any is slow
  static constexpr int kLate = 2;         // one after the other
  static constexpr int kMemory = 32;      // measurements that the usual one is the mean of
  static constexpr Nanos kRest = 30 * Nanos{1'000'000'000};  // before it is told to be slow again

  bool IsSlow(double seconds) const {
    return known_ >= kLearning && seconds > kSlower * usual() && seconds - usual() > kLeast;
  }
  void Learn(double seconds) {
    if (known_ < kMemory) ++known_;
    mean_ += (std::log(seconds) - mean_) / known_;
  }

  double mean_ = 0;  // of logarithms: one that took long must not hide the next
  int known_ = 0, late_ = 0;
  double last_ = 0;
  bool slow_ = false;
  Nanos told_ = 0;
};

class SpeedNews {
 public:
  // A line for each that has changed, of what is measured now.
  std::vector<std::string> Look(const NodeMeasures& measured, Nanos now) {
    std::vector<std::string> lines;
    if (measured.disk_bytes_per_second > 0) {
      Add(disk_, "the own disk", kPiece / measured.disk_bytes_per_second, now, lines);
    }
    std::map<std::string, UsualTime> links;  // of peers that are known still
    for (const NodeMeasures::Link& link : measured.links) {
      const double bytes = link.bytes_per_second > 0 ? kAnswer / link.bytes_per_second : 0;
      UsualTime& time = links[link.peer] = links_[link.peer];
      Add(time, fmt::format("the link to {}", link.peer), link.round_trip_seconds + bytes, now,
          lines);
    }
    links_ = std::move(links);
    return lines;
  }

 private:
  static constexpr double kPiece = 1 << 20;    // bytes that are read
  static constexpr double kAnswer = 16 << 10;  // bytes that come back from a peer

  static void Add(UsualTime& time, const std::string& what, double seconds, Nanos now,
                  std::vector<std::string>& lines) {
    switch (time.Add(seconds, now)) {
      case UsualTime::Change::kNone:
        return;
      case UsualTime::Change::kSlow:
        lines.push_back(fmt::format("{} is slow: {:.3g} ms for what takes {:.3g} ms usually", what,
                                    1e3 * seconds, 1e3 * time.usual()));
        return;
      case UsualTime::Change::kBack:
        lines.push_back(
            fmt::format("{} is as fast as usual again: {:.3g} ms", what, 1e3 * seconds));
        return;
    }
  }

  UsualTime disk_;
  std::map<std::string, UsualTime> links_;
};

}  // namespace troupe
