// Experts on their way from the cache to whoever computes with them: what is there is kept, each
// with a pin on its slot, until it is given out, and its pin until the one that has it asks for
// more. When something is there, and how much of it to give at once, others decide.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "expert/cache/expert_cache.h"
#include "model/expert_source.h"

namespace troupe {

class HandOut {
 public:
  // Everything, and with it all pins.
  void Forget();

  void Add(const ReadyExpert& expert, ExpertCache::Pin pin);
  // What was added since Forget was there when it was asked for, and is given before all else.
  void ResidentsEnd() { residents_ = ready_.size(); }

  std::size_t ready() const { return ready_.size(); }
  std::size_t residents() const { return residents_; }
  bool IsReady(std::uint32_t expert) const;

  // At most so many of those that are ready, in the order in which they came, good until the next
  // call; lets go of what was given before.
  std::span<const ReadyExpert> Give(std::size_t most);
  // This one, which is ready.
  std::span<const ReadyExpert> GiveOne(std::uint32_t expert);
  void LetGoOfGiven() { given_pins_.clear(); }

 private:
  std::size_t residents_ = 0;  // the first of ready_
  std::vector<ReadyExpert> ready_, given_;
  std::vector<ExpertCache::Pin> ready_pins_, given_pins_;
};

}  // namespace troupe
