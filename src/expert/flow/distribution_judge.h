// Whether having misses computed elsewhere is worth it on this machine, by what layers really take
// and not by what was planned: plans know nothing of a processor that peers keep busy, or of a link
// that others use. For a layer the planner of misses decides; here it is decided for all requests
// whose passes are as large as each other, and so for all.
//
// Layers that were shared are compared with what the same misses would have taken from the own
// disk, which is what was planned for that, times what layers without any sharing take longer than
// planned. Where sharing is clearly slower it rests for a while, and longer each time it was tried
// in vain. Pure: time comes in as an argument.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "base/clock.h"

namespace troupe {

// A layer whose misses could have been shared, once it had all of them.
struct JudgedLayer {
  std::uint32_t layer = 0;
  std::uint32_t rows = 0;  // of the pass
  std::uint32_t misses = 0;
  std::uint32_t elsewhere = 0;   // of them
  double all_local_seconds = 0;  // as planned
  double planned_seconds = 0;    // as it was shared
  double took_seconds = 0;

  bool operator==(const JudgedLayer&) const = default;
};

// Of passes of a size.
struct DistributionReport {
  std::uint32_t least_rows = 0;
  std::uint64_t shared = 0, local = 0, rested = 0;  // layers
  double gain = 0;  // times as fast as the own disk, lately; 0: too little is known
  bool rests = false;
  std::uint64_t rests_begun = 0;

  bool operator==(const DistributionReport&) const = default;
};

class DistributionJudge {
 public:
  static constexpr std::size_t kRecent = 16;

  // Whether the misses of a layer of such a pass may be shared now; counts those that may not.
  bool MayShare(std::uint32_t rows, Nanos now);
  void OnLayer(const JudgedLayer& layer, Nanos now);

  // Whether repeated trials have shown that sharing does not pay for nearly all recent passes, so
  // that memory kept for peers is better used by the own cache. It stays so during another trial,
  // until one pays.
  bool IsGivenUp() const;

  std::vector<DistributionReport> Report() const;
  const std::deque<JudgedLayer>& recent() const { return recent_; }

 private:
  // Of layers, older ones counting less.
  struct Aged {
    double planned = 0, took = 0, layers = 0;
    void Add(double planned_seconds, double took_seconds);
    double Ratio() const { return planned > 0 ? took / planned : 1; }
  };
  struct Size {
    Aged shared, local;
    DistributionReport counts;
    Nanos rests_until = 0;
    Nanos next_rest = 0;
    bool on_trial = false;  // it has rested before
    double layers = 0;      // that might have been shared, older ones counting less
  };

  static std::size_t SizeOf(std::uint32_t rows);
  static double GainOf(const Size& size);
  static void Judge(Size& size, Nanos now);

  static constexpr std::array<std::uint32_t, 4> kLeastRows = {1, 2, 8, 64};
  std::array<Size, kLeastRows.size()> sizes_;
  std::deque<JudgedLayer> recent_;
};

// A line for people, of what is known of passes of a size.
std::string ToString(const DistributionReport& report);

}  // namespace troupe
