#include "text/grammar/stack_states.h"

#include <algorithm>
#include <utility>

namespace troupe {

StackStates::StackStates(std::shared_ptr<const Automaton> automaton, std::size_t most_states,
                         Bytes most_bytes, StackLimits each)
    : automaton_(std::move(automaton)),
      most_states_(most_states),
      most_bytes_(most_bytes),
      each_(each),
      pool_(*automaton_, each) {
  Intern({});
}

void StackStates::StartCounting() {
  for (const std::uint32_t step : counted_ids_) is_counted_[step] = false;
  counted_ids_.clear();
  counted_ = 0;
}

void StackStates::Count(State state, std::size_t step) {
  is_counted_[step] = true;
  counted_ids_.push_back(static_cast<std::uint32_t>(step));
  counted_ += facts_[state].work;
}

void StackStates::Clear() { *this = StackStates(automaton_, most_states_, most_bytes_, each_); }

StackStates::State StackStates::Intern(const std::vector<CellId>& tops) {
  const State state = states_.Intern(tops);
  if (state == facts_.size()) {
    facts_.emplace_back();
    next_.resize(next_.size() + automaton_->classes(), kUnknown);
    is_counted_.resize(next_.size());
  }
  return state;
}

StackStates::State StackStates::At(NodeId node, std::uint32_t need, std::uint32_t room) {
  return Intern({pool_.Intern({node, need, room, StackPool::kOnlyBottom})});
}

Status StackStates::Expand(State state) {
  if (facts_[state].is_expanded) return OkStatus();
  pool_.ResetWork();
  TROUPE_ASSIGN_OR_RETURN(const StackPool::Expansion* const expansion,
                          pool_.Expand(states_.Get(state)));
  std::vector<CellId> readers = expansion->readers;
  std::ranges::sort(readers);
  facts_[state] = {.is_expanded = true,
                   .reaches_bottom = expansion->reaches_bottom,
                   .readers = readers_.Intern(readers),
                   .work = pool_.work() + pool_.ReadingWork(readers)};
  return OkStatus();
}

Result<bool> StackStates::ReachesBottom(State state) {
  TROUPE_RETURN_IF_ERROR(Expand(state));
  return facts_[state].reaches_bottom;
}

Status StackStates::FindStep(State state, std::uint8_t byte) {
  TROUPE_RETURN_IF_ERROR(Expand(state));
  if (states_.size() >= most_states_) {
    return Error(Code::kResourceExhausted,
                 "the grammar takes more than {} states to look one token ahead", most_states_);
  }
  if (bytes() > most_bytes_) {
    return Error(Code::kResourceExhausted,
                 "the grammar takes more than {} MiB to look one token ahead",
                 most_bytes_.count() >> 20);
  }
  const std::span<const CellId> readers = readers_.Get(facts_[state].readers);
  const State next = Intern(pool_.Read(readers, byte));
  next_[state * automaton_->classes() + automaton_->ClassOf(byte)] = next;
  return OkStatus();
}

}  // namespace troupe
