// A link whose bandwidth all transfers under way share evenly (processor sharing). Keeps a virtual
// clock of bytes that each transfer has received since the link was last idle: a transfer ends when
// that clock has advanced by its size, so a change in the number of transfers costs O(log n), not a
// visit to each. Knows no events: the simulation asks when the next one ends.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/check.h"

namespace troupe {

class SharedLink {
 public:
  explicit SharedLink(double bytes_per_second) : bytes_per_second_(bytes_per_second) {}

  // Of an idle link that becomes another; versions go on, so that no old end is taken for a new
  // one.
  void SetBandwidth(double bytes_per_second) {
    TROUPE_CHECK(idle());
    bytes_per_second_ = bytes_per_second;
  }
  bool idle() const { return transfers_.empty(); }
  std::size_t active() const { return transfers_.size(); }
  // Counts the changes: an end that was computed before the last one is out of date.
  std::uint32_t version() const { return version_; }

  void Start(double now, double bytes, std::uint32_t id) {
    Advance(now);
    transfers_.emplace_back(received_ + bytes, id);
    std::push_heap(transfers_.begin(), transfers_.end(), std::greater<>());
    ++version_;
  }
  // When the next transfer ends if none is added until then. Not when idle.
  double NextEnd() const {
    return at_ + std::max(0.0, transfers_.front().first - received_) *
                     static_cast<double>(transfers_.size()) / bytes_per_second_;
  }
  // Takes out the one whose end NextEnd told.
  std::uint32_t End(double now) {
    TROUPE_CHECK(!transfers_.empty());
    at_ = now;
    received_ = transfers_.front().first;  // exactly, so that rounding does not add up
    const std::uint32_t id = transfers_.front().second;
    std::pop_heap(transfers_.begin(), transfers_.end(), std::greater<>());
    transfers_.pop_back();
    if (transfers_.empty()) received_ = 0;
    ++version_;
    return id;
  }

 private:
  void Advance(double now) {
    if (!transfers_.empty()) {
      received_ += (now - at_) * bytes_per_second_ / static_cast<double>(transfers_.size());
    }
    at_ = now;
  }

  double bytes_per_second_;
  double at_ = 0;
  double received_ = 0;
  std::uint32_t version_ = 0;
  std::vector<std::pair<double, std::uint32_t>> transfers_;  // heap: when received_ ends it, id
};

}  // namespace troupe
