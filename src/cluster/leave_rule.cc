#include "cluster/leave_rule.h"

#include <algorithm>
#include <cstddef>

namespace troupe {
namespace {

bool IsPlanned(ExpertId id, const OtherNode& other) {
  return other.planned != nullptr && other.planned->Wants(id);
}

bool Counts(ExpertId id, std::uint64_t epoch, const OtherNode& other) {
  return other.here && other.epoch == epoch && other.held != nullptr && other.held->Has(id);
}

}  // namespace

bool MayLeave(ExpertId id, std::string_view self, std::uint64_t epoch,
              std::span<const OtherNode> others) {
  bool is_awaited = false;
  for (const OtherNode& other : others) {
    const bool is_planned = IsPlanned(id, other);
    if (Counts(id, epoch, other) && (is_planned || other.name < self)) return true;
    is_awaited = is_awaited || (is_planned && other.awaited);
  }
  return !is_awaited;  // nobody will hold it
}

bool MayRest(ExpertId id, std::string_view self, std::uint64_t epoch, std::uint32_t copies,
             std::span<const OtherNode> others) {
  const auto keep = std::ranges::count_if(others, [&](const OtherNode& other) {
    return IsPlanned(id, other) && other.name < self && Counts(id, epoch, other);
  });
  return keep >= static_cast<std::ptrdiff_t>(copies);
}

}  // namespace troupe
