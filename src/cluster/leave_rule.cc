#include "cluster/leave_rule.h"

namespace troupe {

bool MayLeave(ExpertId id, std::string_view self, std::uint64_t epoch,
              std::span<const OtherNode> others) {
  bool is_awaited = false;
  for (const OtherNode& other : others) {
    const bool is_planned = other.planned != nullptr && other.planned->Wants(id);
    const bool counts =
        other.here && other.epoch == epoch && other.held != nullptr && other.held->Has(id);
    if (counts && (is_planned || other.name < self)) return true;
    is_awaited = is_awaited || (is_planned && other.awaited);
  }
  return !is_awaited;  // nobody will hold it
}

}  // namespace troupe
