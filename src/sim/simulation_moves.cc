// How experts move: one after the other, over the links if they come from other servers, and then
// into a device. What that takes from serving the setup says (simulation.h).
#include "sim/simulation_run.h"

namespace troupe {

void SimulationRun::BeginMove(const std::optional<MigrationLoad>& load) {
  if (!load) return;
  moving_ = *load;
  const std::optional<std::uint32_t> source = SourceOf(moving_);
  if (!source) return LoadMoved();
  const std::uint32_t id = calls_.Take();
  Call& call = calls_[id];
  call.home = *source;
  call.host = moving_.server;
  call.returning = false;
  call.moves = true;
  call.began = events_.now();
  StartTransfer(*source, moving_.server, static_cast<double>(moving_.bytes), id);
}

// Who holds it behind the fastest link; nobody if it need not come over one.
std::optional<std::uint32_t> SimulationRun::SourceOf(const MigrationLoad& load) const {
  if (setup_.migration.loads != MigrationLoads::kLinks) return std::nullopt;
  std::optional<std::uint32_t> best;
  double fastest = 0;
  for (std::uint32_t n = 0; n < setup_.problem.server_count(); ++n) {
    if (n == load.server || !map_.holders().Holds(n, load.expert)) continue;
    const double speed = setup_.problem.links.Between(n, load.server).bytes_per_second;
    if (speed <= fastest) continue;
    best = n;
    fastest = speed;
  }
  return best;
}

void SimulationRun::EndFetch(std::uint32_t id) {
  migrator_.NoteFetched(events_.now() - calls_[id].began);
  calls_.Give(id);
  LoadMoved();
}

void SimulationRun::LoadMoved() {
  const DeviceIndex device = map_.FirstDevice(moving_.server) + moving_.device;
  const double seconds = devices_.LoadSeconds(device, moving_.bytes);
  migrator_.NoteLoading(seconds);
  const bool beside = setup_.migration.loads == MigrationLoads::kBeside;
  events_.Add(beside ? events_.now() + seconds : Occupy(device, seconds), kMigrationLoad, 0);
}

}  // namespace troupe
