#include "expert/cache/echo_of_sequence.h"

#include <algorithm>
#include <numeric>

namespace troupe {

Bytes EchoOfSequence::BytesFor(ExpertGrid grid, std::uint32_t steps) {
  return RouteHistory::BytesFor(grid, steps) + Bytes(grid.Count() * sizeof(Expert));
}

EchoOfSequence::EchoOfSequence(ExpertGrid grid, std::uint32_t steps, const EchoSettings& settings)
    : grid_(grid),
      settings_(settings),
      history_(grid, steps),
      experts_(grid.Count()),
      layers_(grid.layers) {
  double kept = 1;
  for (double& after : kept_) {
    after = kept;
    kept *= settings_.recent_kept;
  }
  // Falls with the time until it comes, and slowly: a large cache chooses among experts that are
  // all needed late. The next step counts 1.
  const double half_after = settings_.half_after;
  for (std::size_t i = 0; i < worth_.size(); ++i) {
    worth_[i] = half_after / (static_cast<double>(i) + half_after);
  }
}

bool EchoOfSequence::BeginsStep(ExpertId id) const {
  if (layer_ == kNoLayer || id.layer < layer_) return true;
  return id.layer == layer_ && std::ranges::find(asked_, id.expert) != asked_.end();
}

void EchoOfSequence::OnAsked(ExpertId id, std::uint32_t tokens) {
  const bool begins_step = BeginsStep(id);
  if (begins_step || id.layer != layer_) {
    TakeIn();
    layer_ = id.layer;
    asked_.clear();
    tokens_.clear();
    taken_in_ = 0;
  }
  if (begins_step) {
    ++step_;
    history_.BeginStep();
    stale_ = true;
  }
  asked_.push_back(id.expert);
  tokens_.push_back(tokens);
}

// Not with every ask: how many a layer asks for decides what each of them says.
void EchoOfSequence::TakeIn() {
  if (taken_in_ == asked_.size()) return;
  const auto experts = std::span(asked_).subspan(taken_in_);
  Layer& layer = layers_[layer_];
  CountRecent(layer, experts, std::span(tokens_).subspan(taken_in_), taken_in_ == 0);
  // Many tokens at once use most experts of a layer: that resembles everything.
  const bool telling = asked_.size() <= grid_.experts / 2;
  history_.Use(layer_, experts, telling ? asked_.size() : 0);
  layer.last_step = step_;
  ++layer.changes;
  taken_in_ = asked_.size();
  stale_ = true;
}

void EchoOfSequence::CountRecent(Layer& layer, std::span<const std::uint32_t> experts,
                                 std::span<const std::uint32_t> tokens, bool first) {
  // How many tokens a step had is not known; as many as the expert that most of them chose.
  const std::uint32_t most = std::max(1u, *std::ranges::max_element(tokens));
  if (first) layer.tokens += most;
  for (std::size_t i = 0; i < experts.size(); ++i) {
    Expert& expert = experts_[grid_.Index({layer_, experts[i]})];
    expert.recent =
        expert.recent * Kept(layer.tokens - expert.recent_at) + (1 - Kept(most)) * tokens[i] / most;
    expert.recent_at = layer.tokens;
  }
}

void EchoOfSequence::Listen() {
  if (!stale_) return;
  stale_ = false;
  matches_ = history_.Closest(settings_.matches);
  if (matches_.empty()) return;
  const std::int16_t least = std::ranges::min_element(matches_, {}, &Match::likeness)->likeness;
  weights_.clear();
  for (const Match& match : matches_) {
    const double above = match.likeness - least;
    weights_.push_back(above * above + 1);
  }
  const double all = std::accumulate(weights_.begin(), weights_.end(), 0.0);
  for (double& weight : weights_) weight /= all;
}

double EchoOfSequence::WorthAfterMatches(ExpertId id) const {
  // The layer's next run is in the next step, or still in this one.
  const std::uint32_t passed = layers_[id.layer].last_step == step_ ? 1 : 0;
  double worth = 0;
  for (std::size_t i = 0; i < matches_.size(); ++i) {
    const std::uint32_t steps = history_.StepsToUse(id, matches_[i].lag - passed);
    if (steps != RouteHistory::kNotSoon) worth += weights_[i] * worth_[steps];
  }
  return worth;
}

double EchoOfSequence::Value(ExpertId id) {
  const Layer& layer = layers_[id.layer];
  Expert& expert = experts_[grid_.Index(id)];
  // Once each time that its layer has run: in between little is learnt, and most experts of a large
  // cache belong to other layers.
  if (expert.valued_after != layer.changes + 1) {
    Listen();
    expert.valued_after = layer.changes + 1;
    expert.value = WorthAfterMatches(id) +
                   settings_.recent_share * expert.recent * Kept(layer.tokens - expert.recent_at);
  }
  return expert.value;
}

}  // namespace troupe
