// What loading and computing cost in a replay: from flags, from what `troupe probe` measured on
// this machine, and from what the trace says of its model's weights.
#pragma once

#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/status.h"
#include "io/link_speed.h"
#include "sim/replay/cache_replay.h"
#include "troupe/option_table.h"

namespace troupe {

struct CostedHeader {
  ReplayCosts costs;
  std::uint64_t expert_bytes = 0;  // of the largest; 0: not known
  bool timed = false;              // loads take time
};

class ReplayCostFlags {
 public:
  void AddTo(Options& options);
  Status CheckUsage() const;
  Result<CostedHeader> For(const TraceHeader& header, const std::string& path) const;

 private:
  Status Measured(const TraceHeader& header, CostedHeader& costed) const;

  std::optional<LinkSpeed> link_;
  Bytes expert_bytes_;
  std::optional<double> expert_us_, expert_row_us_, layer_us_, layer_row_us_, second_lane_us_;
  double begin_share_ = 1;
  std::string measured_;
  std::uint32_t cost_threads_ = 0;
};

}  // namespace troupe
