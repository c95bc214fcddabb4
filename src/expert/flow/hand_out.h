// The experts of one demand on their way from the cache to whoever computes with them: each that is
// ready is kept, with a pin on its slot, until it is given, and its pin until the one that has it
// asks for more. When and how much to give is MissFlow's part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "expert/cache/expert_cache.h"

namespace troupe {

struct Given {
  std::uint32_t expert = 0;
  std::uint32_t slot = 0;
  ExpertCopy copy = ExpertCopy::kFull;

  bool operator==(const Given&) const = default;
};

class HandOut {
 public:
  // Forgets everything and releases all pins.
  void Forget();

  void Add(const Given& expert, ExpertCache::Pin pin);
  // What was added since Forget was resident when it was asked for, and is given before all else.
  void MarkResidents() { residents_ = ready_.size(); }

  std::size_t ready() const { return ready_.size(); }
  std::size_t residents() const { return residents_; }
  std::size_t held() const { return given_pins_.size(); }
  bool IsReady(std::uint32_t expert) const;

  // At most `most` of those that are ready, in the order in which they came, valid until the next
  // call; releases the pins of what was given before.
  std::span<const Given> Give(std::size_t most);
  // This one, which is ready.
  std::span<const Given> GiveOne(std::uint32_t expert);
  void LetGoOfGiven() { given_pins_.clear(); }

 private:
  std::size_t residents_ = 0;  // the first of ready_
  std::vector<Given> ready_, given_;
  std::vector<ExpertCache::Pin> ready_pins_, given_pins_;
};

}  // namespace troupe
