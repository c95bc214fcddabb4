// What was learned of misses from routers' scores, as a value: calibration leaves it beside a model
// (runtime/score_tables_file.h), and a run begins with it and goes on learning from there. What the
// numbers of each array are, the class that they come from says.
#pragma once

#include <cstdint>
#include <vector>

#include "expert/expert_grid.h"

namespace troupe {

struct ScoreTables {
  ExpertGrid grid;
  std::uint32_t experts_per_token = 0;
  std::vector<std::uint32_t> layers;    // that have experts, rising
  std::uint64_t tokens = 0;             // that were learned from
  std::vector<float> weights, moments;  // ScoreMap
  std::vector<float> fits;              // MissChance
  // Of the learned tokens, the share that chose each expert (ExpertGrid::Index).
  std::vector<float> shares;

  bool operator==(const ScoreTables&) const = default;
};

}  // namespace troupe
