#include "sim/migrator.h"

#include <algorithm>

namespace troupe {

Migrator::Migrator(const PlacementProblem& problem, const Placement& placement,
                   const MigrationSetup& setup)
    : setup_(setup) {
  if (!enabled()) return;
  problem_ = problem;
  placement_ = placement;
  Forget();
  Result<std::unique_ptr<Placer>> placer = MakePlacer(setup.placer, setup.options);
  if (placer.ok()) {
    placer_ = *std::move(placer);
  } else {
    status_ = placer.status();
  }
}

double Migrator::SecondsPerRemoteCall() const {
  if (remote_assignments_ <= 0) return 0;
  // Jobs of one layer run at the same time; what each of its pairs took is its job's share.
  const double local = local_assignments_ > 0 ? local_seconds_ / local_assignments_ : 0;
  return std::max(0.0, remote_seconds_ / remote_assignments_ - local);
}

std::optional<MigrationLoad> Migrator::Consider(double now, ExpertMap& map) {
  if (under_way_ || remote_assignments_ + local_assignments_ <= 0) return std::nullopt;
  Result<Placement> fresh = placer_->Place(problem_);
  if (!fresh.ok()) {
    status_ = fresh.status();
    return std::nullopt;
  }
  const Placement target = KeepDevices(problem_, placement_, *std::move(fresh));
  MigrationRecord record{
      .seconds = now,
      .decision = DecideMigration(problem_, placement_, target, SecondsPerRemoteCall())};
  if (!record.decision.adopt) {
    records_.push_back(record);
    return std::nullopt;
  }
  plan_ = OrderMigration(problem_, placement_, target);
  record.staged = plan_.staged;
  record.undone = plan_.undone;
  record.loads = static_cast<std::uint32_t>(std::count_if(
      plan_.steps.begin(), plan_.steps.end(),
      [](const MigrationStep& step) { return step.kind == MigrationStep::Kind::kLoad; }));
  adopted_ = records_.size();
  records_.push_back(record);
  next_step_ = 0;
  under_way_ = true;
  return Continue(now, map);
}

std::optional<MigrationLoad> Migrator::Loaded(double now, ExpertMap& map) {
  const MigrationStep& step = plan_.steps[next_step_++];
  map.Load(step.server, step.device, step.expert);
  return Continue(now, map);
}

std::optional<MigrationLoad> Migrator::Continue(double now, ExpertMap& map) {
  for (; next_step_ < plan_.steps.size(); ++next_step_) {
    const MigrationStep& step = plan_.steps[next_step_];
    if (step.kind == MigrationStep::Kind::kLoad) {
      return MigrationLoad{.server = step.server,
                           .device = step.device,
                           .expert = step.expert,
                           .bytes = problem_.experts.BytesOf(step.expert)};
    }
    map.Drop(step.server, step.device, step.expert);
  }
  under_way_ = false;
  placement_ = plan_.result;
  records_[adopted_].finished_seconds = now;
  Forget();
  return std::nullopt;
}

void Migrator::Forget() {
  for (PlacementServer& server : problem_.servers) {
    std::fill(server.activations.begin(), server.activations.end(), 0.0);
  }
  local_assignments_ = local_jobs_ = local_seconds_ = 0;
  remote_assignments_ = remote_seconds_ = 0;
}

}  // namespace troupe
