#include "placement/remote_calls.h"

namespace troupe {

RemoteCalls CountRemoteCalls(const PlacementProblem& problem, const HolderTable& holders) {
  RemoteCalls calls;
  for (std::uint32_t n = 0; n < problem.server_count(); ++n) {
    const std::vector<double>& activations = problem.servers[n].activations;
    double remote = 0;
    for (ExpertIndex e = 0; e < activations.size(); ++e) {
      calls.all += activations[e];
      if (!holders.Holds(n, e)) remote += activations[e];
    }
    calls.by_server.push_back(remote);
    calls.remote += remote;
  }
  return calls;
}

RemoteCalls CountRemoteCalls(const PlacementProblem& problem, const Placement& placement) {
  return CountRemoteCalls(problem, HolderTable(problem, placement));
}

}  // namespace troupe
