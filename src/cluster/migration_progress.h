// How far nodes have come from what they held when a plan came to what it gives them: what the
// live page shows of a migration under way. One node sees it of all that are there, by what they
// tell. An expert that has come counts as moved though it is let go again, as one does that rests.
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "cluster/face/migration_look.h"
#include "cluster/plan/cluster_plan.h"
#include "expert/expert_id.h"

namespace troupe {

class MigrationProgress {
 public:
  struct Node {
    std::string name;
    std::function<bool(ExpertId id)> holds;
    // It says itself that nothing more is to come, as what it does not hold rests.
    bool is_done = false;
  };

  explicit MigrationProgress(std::function<std::uint64_t(std::uint32_t layer)> bytes_of)
      : bytes_of_(std::move(bytes_of)) {}

  // The plan in force and the nodes that are there, whenever any of it has changed.
  void Look(const ClusterPlan& plan, std::span<const Node> here, Nanos now);
  MigrationLook At(Nanos now) const;

 private:
  struct Way {
    std::vector<ExpertId> to_come;
    std::size_t moved = 0;
    std::uint64_t bytes_left = 0, bytes_moved = 0;
    bool is_here = false;
  };

  std::function<std::uint64_t(std::uint32_t layer)> bytes_of_;  // of an expert
  std::uint64_t epoch_ = 0;
  Nanos began_ = 0, moved_at_ = 0;
  std::map<std::string, Way> ways_;  // of nodes that were there under this plan
};

}  // namespace troupe
