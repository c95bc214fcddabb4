// A pushdown automaton made deterministic as far as it is used: a state is a set of stacks that
// begin somewhere in the grammar and stand on an unknown rest, and each step is found once. Token
// masks walk hundreds of thousands of steps through a few states. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "text/grammar/automaton.h"
#include "text/grammar/id_sets.h"
#include "text/grammar/stack_pool.h"

namespace troupe {

class StackStates {
 public:
  using State = SetId;
  static constexpr State kNone = 0;  // no stack is left: the bytes do not fit

  // kResourceExhausted from Step when `most_states` are made, or when they take more memory than
  // `most_bytes`; the last one may go beyond that. Also where one of them can go on in more ways
  // than `each` has.
  StackStates(std::shared_ptr<const Automaton> automaton, std::size_t most_states,
              Bytes most_bytes = 256_MiB, StackLimits each = {});

  // Reading goes on at this node, with these counters of its loop.
  State At(NodeId node, std::uint32_t need, std::uint32_t room);

  Result<State> Step(State state, std::uint8_t byte) {
    const std::size_t at = state * automaton_->classes() + automaton_->ClassOf(byte);
    if (next_[at] == kUnknown) TROUPE_RETURN_IF_ERROR(FindStep(state, byte));
    if (!is_counted_[at]) Count(state, at);
    return next_[at];
  }

  // The beginning may end here: what follows is up to the rest, too.
  Result<bool> ReachesBottom(State state);

  // Of one step from here. REQUIRES: ReachesBottom was asked.
  std::uint64_t WorkAt(State state) const { return facts_[state].work; }
  // The work of all steps since, each counted once and as if nothing had been found before: the
  // same number whoever has asked what.
  void StartCounting();
  std::uint64_t counted() const { return counted_; }

  bool is_empty() const { return states_.size() == 1; }  // but for kNone
  std::size_t size() const { return states_.size(); }
  Bytes bytes() const {  // of memory
    return pool_.bytes() + states_.bytes() + readers_.bytes() +
           Bytes(facts_.capacity() * sizeof(Facts) + next_.capacity() * sizeof(SetId) +
                 is_counted_.capacity() / 8);
  }
  void Clear();

 private:
  static constexpr SetId kUnknown = ~SetId{0};

  struct Facts {
    bool is_expanded = false;
    bool reaches_bottom = false;
    SetId readers = 0;
    std::uint64_t work = 0;  // of a step from here
  };

  State Intern(const std::vector<CellId>& tops);
  Status Expand(State state);
  Status FindStep(State state, std::uint8_t byte);
  void Count(State state, std::size_t step);

  std::shared_ptr<const Automaton> automaton_;
  std::size_t most_states_;
  Bytes most_bytes_;
  StackLimits each_;
  StackPool pool_;
  IdSets states_;
  IdSets readers_;
  std::vector<Facts> facts_;                // by state
  std::vector<SetId> next_;                 // by state and class of byte
  std::vector<bool> is_counted_;            // by state and class, too
  std::vector<std::uint32_t> counted_ids_;  // of these steps
  std::uint64_t counted_ = 0;
};

}  // namespace troupe
