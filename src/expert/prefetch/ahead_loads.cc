#include "expert/prefetch/ahead_loads.h"

#include <algorithm>
#include <utility>

namespace troupe {

Bytes AheadLoads::BytesFor(ExpertGrid grid) {
  return Bytes(2 * grid.Count() * sizeof(std::uint32_t) + grid.Count() / 8);
}

AheadLoads::AheadLoads(ExpertGrid grid)
    : grid_(grid),
      ahead_(grid.Count()),
      displaced_(grid.Count(), kNobody),
      displaced_by_(grid.Count(), kNobody) {}

std::uint64_t AheadLoads::count() const {
  return static_cast<std::uint64_t>(std::ranges::count(ahead_, true));
}

void AheadLoads::Begin(ExpertId id, std::optional<ExpertId> evicted) {
  Forgive(id);
  const auto index = static_cast<std::uint32_t>(grid_.Index(id));
  ahead_[index] = true;
  if (!evicted) return;
  displaced_[index] = static_cast<std::uint32_t>(grid_.Index(*evicted));
  displaced_by_[displaced_[index]] = index;
}

bool AheadLoads::End(ExpertId id) {
  const std::size_t index = grid_.Index(id);
  const bool was = ahead_[index];
  ahead_[index] = false;
  return was;
}

void AheadLoads::ForgetDisplacing(ExpertId id) {
  const std::uint32_t by = std::exchange(displaced_by_[grid_.Index(id)], kNobody);
  if (by != kNobody) displaced_[by] = kNobody;
}

void AheadLoads::Forgive(ExpertId id) {
  const std::size_t index = grid_.Index(id);
  const std::uint32_t victim = std::exchange(displaced_[index], kNobody);
  if (victim != kNobody && displaced_by_[victim] == index) displaced_by_[victim] = kNobody;
}

}  // namespace troupe
