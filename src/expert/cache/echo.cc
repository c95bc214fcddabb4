#include "expert/cache/echo.h"

#include <algorithm>

namespace troupe {

Echo::Echo(ExpertGrid grid, std::uint32_t sequences, std::uint32_t steps,
           const EchoSettings& settings)
    : grid_(grid), steps_(steps), settings_(settings), asked_(grid.experts) {
  sequences_.reserve(sequences);
  while (sequences_.size() < sequences) {
    sequences_.push_back({.past = EchoOfSequence(grid_, steps_, settings_)});
  }
}

bool Echo::BeginsPass(ExpertId id) const {
  return !layer_ || id.layer < *layer_ || (id.layer == *layer_ && asked_[id.expert]);
}

void Echo::OnAsked(ExpertId id, std::span<const Asker> askers) {
  const bool begins_pass = BeginsPass(id);
  pass_ += begins_pass ? 1 : 0;
  if (begins_pass || id.layer != *layer_) std::fill(asked_.begin(), asked_.end(), false);
  layer_ = id.layer;
  asked_[id.expert] = true;
  for (const Asker& asker : askers) {
    if (asker.sequence == kNoSequence) continue;
    while (sequences_.size() <= asker.sequence) {
      sequences_.push_back({.past = EchoOfSequence(grid_, steps_, settings_)});
    }
    sequences_[asker.sequence].past.OnAsked(id, asker.tokens);
    sequences_[asker.sequence].last_pass = pass_;
  }
}

std::size_t Echo::Choose(std::span<const ExpertId> candidates) {
  for (Sequence& sequence : sequences_) {
    if (HasASay(sequence)) sequence.past.TakeIn();
  }
  const std::uint32_t layer = layer_.value_or(grid_.layers - 1);
  // Of what is needed in the same step, what the layers still ahead need comes first.
  const auto until_run = [&](ExpertId id) {
    const std::uint32_t layers_ahead = (id.layer + grid_.layers - layer - 1) % grid_.layers + 1;
    return static_cast<double>(layers_ahead) / grid_.layers;
  };
  const auto value = [&](ExpertId id) {
    double sum = 0;
    for (Sequence& sequence : sequences_) {
      if (HasASay(sequence)) sum += sequence.past.Value(id);
    }
    return sum;
  };
  const auto least = std::ranges::min_element(candidates, {}, [&](ExpertId id) {
    const double half_after = settings_.half_after;
    return std::pair(value(id) * half_after / (half_after + until_run(id)), id);
  });
  return static_cast<std::size_t>(least - candidates.begin());
}

}  // namespace troupe
