// From one placement to another by single loads and drops, so that at every moment each expert lies
// complete on some device and no device holds more than its memory, an expert that is being loaded
// included. Pure: whoever carries it out does the steps of the list in order, or in parallel where
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
  // Copies that were brought somewhere for the time being, because everything was full and every
  // expert had to stay covered.
  std::uint32_t staged = 0;
  // Loads that could not be done: without any room and without any duplicate nothing can move. The
  // result is then not the target, but covers all experts as well.
  std::uint32_t undone = 0;
};

// Both placements pass Validate.
MigrationPlan OrderMigration(const PlacementProblem& problem, const Placement& from,
                             const Placement& to);

}  // namespace troupe
