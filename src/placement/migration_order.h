// Orders the single loads and drops that lead from one placement to another. At every moment each
// expert is complete on some device, and no device holds more than its memory, including experts
// that are being loaded. Pure: the caller carries out the steps in order, or in parallel where
// a step does not wait for an earlier one of its device or for a copy of its expert.
#pragma once

#include <cstdint>
#include <vector>

#include "placement/placement.h"
#include "placement/problem.h"

namespace troupe {

struct MigrationStep {
  enum class Kind { kLoad, kDrop };
  Kind kind = Kind::kLoad;
  std::uint32_t server = 0;
  std::uint32_t device = 0;
  ExpertIndex expert = 0;

  bool operator==(const MigrationStep&) const = default;
};

struct MigrationPlan {
  std::vector<MigrationStep> steps;
  Placement result;  // after the last step
  // Copies that were moved temporarily, because everything was full and every expert had to stay
  // covered.
  std::uint32_t staged = 0;
  // Loads that could not be done: without any room and without any duplicate nothing can move. The
  // result is then not the target, but covers all experts as well.
  std::uint32_t undone = 0;
};

// Both placements pass Validate.
MigrationPlan OrderMigration(const PlacementProblem& problem, const Placement& from,
                             const Placement& to);

}  // namespace troupe
