// How far the nodes that are there have come towards the plan in force, as one of them tells it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

struct MigrationLook {
  struct Node {
    std::string name;
    std::size_t experts = 0;  // that were to come when the plan came
    std::size_t moved = 0;    // of them

    bool operator==(const Node&) const = default;
  };

  std::uint64_t epoch = 0;             // of the plan; 0: there is none
  std::vector<Node> nodes;             // that are there and have something to bring in, by name
  std::size_t experts = 0, moved = 0;  // of all of these
  std::uint64_t bytes = 0, bytes_moved = 0;  // of weights
  double seconds = 0;                        // since the plan came
  double quiet_seconds = 0;                  // since an expert came last
  // Until the last node has all, if each goes on as fast as it did under this plan. Nothing: one of
  // them has not begun, or nothing is left.
  std::optional<double> seconds_left;

  bool operator==(const MigrationLook&) const = default;
};

}  // namespace troupe
