#include "runtime/held_experts.h"

#include "base/check.h"

namespace troupe {

void HeldExperts::Add(ExpertId id, const Mlp& weights) {
  Entry& entry = At(id);
  TROUPE_CHECK(entry.state.load(std::memory_order_acquire) == 0);
  entry.weights = weights;
  entry.state.store(kHeld, std::memory_order_release);
  count_.fetch_add(1, std::memory_order_relaxed);
}

void HeldExperts::Remove(ExpertId id) {
  const std::uint32_t before = At(id).state.fetch_and(~kHeld, std::memory_order_acq_rel);
  TROUPE_CHECK((before & kHeld) != 0);
  count_.fetch_sub(1, std::memory_order_relaxed);
}

bool HeldExperts::IsFree(ExpertId id) const {
  return At(id).state.load(std::memory_order_acquire) == 0;
}

bool HeldExperts::Holds(ExpertId id) const {
  return (At(id).state.load(std::memory_order_acquire) & kHeld) != 0;
}

std::optional<HeldExperts::Use> HeldExperts::Find(ExpertId id) {
  Entry& entry = At(id);
  std::uint32_t state = entry.state.load(std::memory_order_relaxed);
  while ((state & kHeld) != 0) {
    if (entry.state.compare_exchange_weak(state, state + 1, std::memory_order_acquire,
                                          std::memory_order_relaxed)) {
      return Use(entry.state, entry.weights);
    }
  }
  return std::nullopt;
}

}  // namespace troupe
