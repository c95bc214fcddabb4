// A placement: which experts each device of each server holds, the paper's z. Every expert lies on
// at least one device, at most once on a server, and a device holds no more than its memory;
// Validate says so or says what is wrong. Also the table that placers work on: who holds what,
// server by server, before devices are chosen (device_packing.h).
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "placement/problem.h"

namespace troupe {

struct Placement {
  // [server][device]: experts in rising order.
  std::vector<std::vector<std::vector<ExpertIndex>>> experts;

  static Placement Empty(const PlacementProblem& problem);
  std::uint64_t copies() const;
  bool operator==(const Placement&) const = default;
};

Status Validate(const Placement& placement, const PlacementProblem& problem);

// Which server holds which expert, with the number of copies of each.
class HolderTable {
 public:
  HolderTable(std::uint32_t servers, std::uint32_t experts);
  explicit HolderTable(const PlacementProblem& problem)
      : HolderTable(problem.server_count(), problem.experts.size()) {}
  // The table of a placement.
  HolderTable(const PlacementProblem& problem, const Placement& placement);

  std::uint32_t servers() const { return servers_; }
  std::uint32_t experts() const { return static_cast<std::uint32_t>(copies_.size()); }
  bool Holds(std::uint32_t server, ExpertIndex e) const {
    return held_[static_cast<std::size_t>(server) * copies_.size() + e] != 0;
  }
  std::uint32_t CopiesOf(ExpertIndex e) const { return copies_[e]; }
  bool Covers() const;
  std::vector<ExpertIndex> On(std::uint32_t server) const;  // rising

  void Add(std::uint32_t server, ExpertIndex e);     // not held before
  void Remove(std::uint32_t server, ExpertIndex e);  // held before

  bool operator==(const HolderTable&) const = default;

 private:
  std::uint32_t servers_;
  std::vector<std::uint8_t> held_;  // [server][expert]
  std::vector<std::uint32_t> copies_;
};

}  // namespace troupe
