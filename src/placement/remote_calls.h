// Eq. 2: how many expert calls leave their server under a placement, by the recorded frequencies.
#pragma once

#include <vector>

#include "placement/placement.h"
#include "placement/problem.h"

namespace troupe {

struct RemoteCalls {
  std::vector<double> by_server;  // of its own users' activations, those of experts it lacks
  double remote = 0;              // Eq. 2
  double all = 0;                 // activations, local ones too

  double LocalRatio() const { return all > 0 ? 1 - remote / all : 1; }
};

RemoteCalls CountRemoteCalls(const PlacementProblem& problem, const HolderTable& holders);
RemoteCalls CountRemoteCalls(const PlacementProblem& problem, const Placement& placement);

}  // namespace troupe
