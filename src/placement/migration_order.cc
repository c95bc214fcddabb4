#include "placement/migration_order.h"

#include <algorithm>
#include <optional>

#include "placement/device_packing.h"

namespace troupe {
namespace {

struct Load {
  std::uint32_t server = 0;
  std::uint32_t device = 0;
  ExpertIndex expert = 0;

  bool operator==(const Load&) const = default;
};

class Orderer {
 public:
  Orderer(const PlacementProblem& problem, const Placement& from, const Placement& to);
  MigrationPlan Run() &&;

 private:
  const std::vector<ExpertIndex>& Held(const Load& at) const {
    return plan_.result.experts[at.server][at.device];
  }
  std::uint64_t& Free(const Load& at) { return free_[at.server][at.device]; }
  bool IsWanted(std::uint32_t server, std::uint32_t device, ExpertIndex e) const {
    const auto& wanted = to_.experts[server][device];
    return std::binary_search(wanted.begin(), wanted.end(), e);
  }
  void DoLoad(const Load& load);
  void DoDrop(const Load& at, ExpertIndex e);
  // Drops experts that are not wanted there and lie elsewhere, too, until `bytes` fit. Drops none
  // if that is not enough.
  bool MakeRoom(const Load& at, std::uint64_t bytes);
  bool LoadAllThatFit();
  // Frees a stuck device: an expert that only it holds moves elsewhere temporarily.
  bool Unblock();
  bool Stage(const Load& stuck, ExpertIndex e);
  std::optional<ExpertIndex> DuplicateToDisplace(const Load& at, std::uint64_t bytes) const;
  void DropWhatIsNotWanted();

  const PlacementProblem& problem_;
  const Placement& to_;
  MigrationPlan plan_;
  std::vector<std::vector<std::uint64_t>> free_;
  std::vector<std::uint32_t> copies_;  // complete ones
  std::vector<Load> pending_;          // those with the most activations first
};

Orderer::Orderer(const PlacementProblem& problem, const Placement& from, const Placement& to)
    : problem_(problem), to_(to), copies_(problem.experts.size(), 0) {
  plan_.result = from;
  for (std::uint32_t n = 0; n < problem.server_count(); ++n) {
    free_.emplace_back();
    for (std::uint32_t d = 0; d < problem.servers[n].devices.size(); ++d) {
      const auto &before = from.experts[n][d], &after = to.experts[n][d];
      free_.back().push_back(problem.servers[n].devices[d].memory - UsedBytes(problem, before));
      for (const ExpertIndex e : before) ++copies_[e];
      for (const ExpertIndex e : after) {
        if (!std::binary_search(before.begin(), before.end(), e)) pending_.push_back({n, d, e});
      }
    }
  }
  std::stable_sort(pending_.begin(), pending_.end(), [&](const Load& a, const Load& b) {
    return problem.servers[a.server].activations[a.expert] >
           problem.servers[b.server].activations[b.expert];
  });
}

void Orderer::DoLoad(const Load& load) {
  plan_.steps.push_back({MigrationStep::Kind::kLoad, load.server, load.device, load.expert});
  AddTo(plan_.result.experts[load.server][load.device], load.expert);
  Free(load) -= problem_.experts.BytesOf(load.expert);
  ++copies_[load.expert];
}

void Orderer::DoDrop(const Load& at, ExpertIndex e) {
  TROUPE_CHECK(copies_[e] > 1);
  plan_.steps.push_back({MigrationStep::Kind::kDrop, at.server, at.device, e});
  RemoveFrom(plan_.result.experts[at.server][at.device], e);
  Free(at) += problem_.experts.BytesOf(e);
  --copies_[e];
}

bool Orderer::MakeRoom(const Load& at, std::uint64_t bytes) {
  std::vector<ExpertIndex> going;
  std::uint64_t room = Free(at);
  for (const ExpertIndex e : Held(at)) {
    if (room >= bytes) break;
    if (copies_[e] < 2 || IsWanted(at.server, at.device, e)) continue;
    going.push_back(e);
    room += problem_.experts.BytesOf(e);
  }
  if (room < bytes) return false;
  for (const ExpertIndex e : going) DoDrop(at, e);
  return true;
}

bool Orderer::LoadAllThatFit() {
  bool progress = false;
  std::vector<Load> left;
  for (const Load& load : pending_) {
    if (MakeRoom(load, problem_.experts.BytesOf(load.expert))) {
      DoLoad(load);
      progress = true;
    } else {
      left.push_back(load);
    }
  }
  pending_ = std::move(left);
  return progress;
}

std::optional<ExpertIndex> Orderer::DuplicateToDisplace(const Load& at, std::uint64_t bytes) const {
  const auto& activations = problem_.servers[at.server].activations;
  std::optional<ExpertIndex> least;
  for (const ExpertIndex e : Held(at)) {
    if (copies_[e] < 2 || problem_.experts.BytesOf(e) < bytes) continue;
    if (!least || activations[e] < activations[*least]) least = e;
  }
  return least;
}

// Room on any device comes first; only if there is none does a duplicate give its place. The copy
// is loaded before the stuck one is dropped, so that the expert is covered at every step.
bool Orderer::Stage(const Load& stuck, ExpertIndex e) {
  const std::uint64_t bytes = problem_.experts.BytesOf(e);
  const auto finish = [&](const Load& at) {
    const Load load{at.server, at.device, e};
    DoLoad(load);
    std::erase(pending_, load);  // in case it was wanted there anyway
    DoDrop(stuck, e);
    ++plan_.staged;
    return true;
  };
  std::optional<Load> displaced;  // the place and the duplicate that would have to go
  for (std::uint32_t n = 0; n < problem_.server_count(); ++n) {
    for (std::uint32_t d = 0; d < problem_.servers[n].devices.size(); ++d) {
      if (n == stuck.server && d == stuck.device) continue;
      const Load at{n, d, e};
      if (MakeRoom(at, bytes)) return finish(at);
      if (displaced) continue;
      if (const auto duplicate = DuplicateToDisplace(at, bytes)) displaced = {n, d, *duplicate};
    }
  }
  if (!displaced) return false;
  DoDrop(*displaced, displaced->expert);
  pending_.push_back(*displaced);  // loaded again when there is room
  return finish(*displaced);
}

bool Orderer::Unblock() {
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    const Load stuck = pending_[i];
    const std::uint64_t bytes = problem_.experts.BytesOf(stuck.expert);
    const std::vector<ExpertIndex> held = Held(stuck);
    for (const ExpertIndex e : held) {
      if (IsWanted(stuck.server, stuck.device, e)) continue;
      if (!Stage(stuck, e)) continue;
      if (!MakeRoom(stuck, bytes)) return true;  // unequal sizes: one was not enough
      DoLoad(stuck);
      std::erase(pending_, stuck);
      return true;
    }
  }
  return false;
}

void Orderer::DropWhatIsNotWanted() {
  for (std::uint32_t n = 0; n < problem_.server_count(); ++n) {
    for (std::uint32_t d = 0; d < problem_.servers[n].devices.size(); ++d) {
      const std::vector<ExpertIndex> held = plan_.result.experts[n][d];
      for (const ExpertIndex e : held) {
        if (copies_[e] > 1 && !IsWanted(n, d, e)) DoDrop({n, d, e}, e);
      }
    }
  }
}

MigrationPlan Orderer::Run() && {
  // Each round loads all that fits, and only when nothing does, stages one expert. Staging always
  // frees something, but might go in circles with sizes that do not fit together: hence a limit.
  std::size_t stages_left = 2 * pending_.size() + 16;
  while (!pending_.empty()) {
    if (LoadAllThatFit()) continue;
    if (stages_left == 0 || !Unblock()) break;
    --stages_left;
  }
  DropWhatIsNotWanted();
  plan_.undone = static_cast<std::uint32_t>(pending_.size());
  return std::move(plan_);
}

}  // namespace

MigrationPlan OrderMigration(const PlacementProblem& problem, const Placement& from,
                             const Placement& to) {
  return Orderer(problem, from, to).Run();
}

}  // namespace troupe
