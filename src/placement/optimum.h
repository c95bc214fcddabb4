// The optimum of Eq. 2 over all placements. With equal sizes it is a transportation problem with
// a lower bound of one copy for each expert, solved exactly by LEMON's network simplex; with
// unequal ones a Lagrangian bound, and the better of two heuristics that come near it.
#pragma once

#include "placement/placement.h"
#include "placement/problem.h"

namespace troupe {

struct RemoteCallOptimum {
  Placement placement;
  double lower_bound = 0;  // no placement has fewer remote calls
  bool exact = false;      // the placement reaches the bound
};

Result<RemoteCallOptimum> MinimizeRemoteCalls(const PlacementProblem& problem);

// The flow alone, and the bound alone. The flow begins with arcs to the `keenest` servers that use
// an expert most; any number leads to the same cost.
constexpr std::uint32_t kKeenestServers = 4;
HolderTable SolveEqualSizes(const PlacementProblem& problem,
                            std::uint32_t keenest = kKeenestServers);
double RemoteCallBound(const PlacementProblem& problem);

}  // namespace troupe
