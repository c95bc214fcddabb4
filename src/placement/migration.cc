#include "placement/migration.h"

#include <algorithm>
#include <iterator>

#include "placement/device_packing.h"
#include "placement/remote_calls.h"

namespace troupe {

Placement KeepDevices(const PlacementProblem& problem, const Placement& from, Placement to) {
  const HolderTable wanted(problem, to);
  Result<Placement> kept = PackDevices(problem, wanted, &from);
  if (!kept.ok() || HolderTable(problem, *kept) != wanted) return to;
  return *std::move(kept);
}

double MigrationSeconds(const PlacementProblem& problem, const Placement& from, const Placement& to,
                        const ComingSpeed& coming) {
  double seconds = 0;
  std::vector<ExpertIndex> changed;
  for (std::uint32_t n = 0; n < problem.server_count(); ++n) {
    for (std::size_t d = 0; d < problem.servers[n].devices.size(); ++d) {
      const auto &before = from.experts[n][d], &after = to.experts[n][d];
      changed.clear();
      std::set_symmetric_difference(before.begin(), before.end(), after.begin(), after.end(),
                                    std::back_inserter(changed));
      for (const ExpertIndex e : changed) {
        const bool comes = std::binary_search(after.begin(), after.end(), e);
        const double speed =
            comes && coming ? coming(n, e) : problem.servers[n].devices[d].load_bytes_per_second;
        seconds += static_cast<double>(problem.experts.BytesOf(e)) / speed;
      }
    }
  }
  return seconds;
}

MigrationDecision DecideMigration(const PlacementProblem& problem, const Placement& from,
                                  const Placement& to, double seconds_per_remote_call,
                                  const ComingSpeed& coming) {
  MigrationDecision decision{
      .seconds_now = CountRemoteCalls(problem, from).remote * seconds_per_remote_call,
      .seconds_after = CountRemoteCalls(problem, to).remote * seconds_per_remote_call,
      .migration_seconds = MigrationSeconds(problem, from, to, coming)};
  decision.adopt = decision.migration_seconds > 0 &&
                   decision.seconds_after + decision.migration_seconds < decision.seconds_now;
  return decision;
}

}  // namespace troupe
