// The scheduler of D6 inside the simulation: counts what was activated and what calls cost since
// the last change, asks the placer every interval, and, if Eq. 4 says so, carries out the steps one
// after another. What a load takes, and takes from serving, which goes on meanwhile, is the
// simulation's part.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "placement/migration_order.h"
#include "sim/expert_work.h"
#include "sim/simulation.h"

namespace troupe {

struct MigrationLoad {
  std::uint32_t server = 0, device = 0;  // of the server
  ExpertIndex expert = 0;
  std::uint64_t bytes = 0;
};

class Migrator {
 public:
  Migrator(const PlacementProblem& problem, const Placement& placement,
           const MigrationSetup& setup);

  bool enabled() const { return setup_.interval_s > 0; }
  const Status& status() const { return status_; }
  const std::vector<MigrationRecord>& records() const { return records_; }

  // Where a server's activations are counted; null if nobody wants to know.
  double* CountsOf(std::uint32_t server) {
    return enabled() ? problem_.servers[server].activations.data() : nullptr;
  }
  void NoteLocalAssignments(std::uint32_t assignments, std::size_t jobs) {
    local_assignments_ += assignments;
    local_jobs_ += static_cast<double>(jobs);
  }
  void NoteLocal(double seconds) { local_seconds_ += seconds; }
  void NoteRemote(double seconds, std::uint32_t assignments) {
    remote_seconds_ += seconds;
    remote_assignments_ += assignments;
  }
  // A remote (token, expert) pair more than a local one, on average since the last change.
  double SecondsPerRemoteCall() const;

  // Both return the next load, if one is due; Loaded is called when it is done.
  std::optional<MigrationLoad> Consider(double now, ExpertMap& map);
  std::optional<MigrationLoad> Loaded(double now, ExpertMap& map);
  // What the load under way took.
  void NoteFetched(double seconds) { records_[adopted_].fetching_seconds += seconds; }
  void NoteLoading(double seconds) { records_[adopted_].loading_seconds += seconds; }

 private:
  std::optional<MigrationLoad> Continue(double now, ExpertMap& map);
  void Forget();

  MigrationSetup setup_;
  PlacementProblem problem_;  // its activations are the counts
  Placement placement_;
  std::unique_ptr<Placer> placer_;
  Status status_;
  std::vector<MigrationRecord> records_;
  MigrationPlan plan_;
  std::size_t next_step_ = 0;
  std::size_t adopted_ = 0;  // the record of the plan
  bool under_way_ = false;
  double local_assignments_ = 0, local_jobs_ = 0, local_seconds_ = 0;
  double remote_assignments_ = 0, remote_seconds_ = 0;
};

}  // namespace troupe
