#include "sim/replay/foreseen_loads.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/check.h"

namespace troupe {

ForeseenLoads::ForeseenLoads(ExpertCache& cache, std::uint64_t layers_ahead, Future future)
    : cache_(cache),
      grid_(cache.shape().grid),
      layers_ahead_(layers_ahead),
      future_(std::move(future)),
      needs_(grid_.Count()),
      ahead_(grid_.Count()) {}

void ForeseenLoads::OnLayerAsks(const LayerChoices& choices, Nanos) {
  const std::optional<Step> step = future_(next_);
  TROUPE_CHECK(step && step->layer == choices.layer());
  const bool looked_beyond = step_ > next_;
  released_ = looked_beyond ? step->demands.size() : at_;
  ++next_;
  if (looked_beyond) return;
  step_ = next_;
  at_ = 0;
}

void ForeseenLoads::OnFound(ExpertId id, Residence residence) {
  const std::size_t index = grid_.Index(id);
  if (!ahead_[index] || residence == Residence::kAbsent) return;
  ahead_[index] = false;
  ++(residence == Residence::kResident ? stats_.useful : stats_.late);
}

void ForeseenLoads::Release(std::uint32_t layer) {
  const std::size_t count = std::exchange(released_, 0);
  if (count == 0) return;
  const std::optional<Step> step = future_(next_ - 1);
  TROUPE_CHECK(step && step->layer == layer);
  for (const ExpertDemand& demand : step->demands.first(count)) {
    const ExpertId id{layer, demand.expert};
    if (--needs_[grid_.Index(id)] == 0) kept_.erase(id);
  }
}

void ForeseenLoads::Need(ExpertId id) {
  ++needs_[grid_.Index(id)];
  if (kept_.contains(id)) return;
  if (cache_.Find(id) == Residence::kResident) {
    kept_.emplace(id, cache_.PinResident(id));
  } else {
    arriving_.push_back(id);
  }
}

void ForeseenLoads::KeepArrived() {
  std::erase_if(arriving_, [this](ExpertId id) {
    if (needs_[grid_.Index(id)] == 0 || kept_.contains(id)) return true;
    if (cache_.Find(id) != Residence::kResident) return false;
    kept_.emplace(id, cache_.PinResident(id));
    return true;
  });
}

std::optional<ExpertId> ForeseenLoads::Next(std::size_t under_way) {
  KeepArrived();
  if (under_way >= kMostUnderWay) return std::nullopt;
  while (step_ - next_ < layers_ahead_) {
    const std::optional<Step> step = future_(step_);
    if (!step) return std::nullopt;
    for (; at_ < step->demands.size(); ++at_) {
      const ExpertId id{step->layer, step->demands[at_].expert};
      if (cache_.Find(id) == Residence::kAbsent) return id;
      Need(id);
    }
    ++step_;
    at_ = 0;
  }
  return std::nullopt;
}

void ForeseenLoads::OnLoadBegins(ExpertId id, std::optional<ExpertId>) {
  ahead_[grid_.Index(id)] = true;
  ++stats_.loads;
}

void ForeseenLoads::OnEvicted(ExpertId id, bool) {
  const std::size_t index = grid_.Index(id);
  stats_.wasted += ahead_[index] ? 1 : 0;
  ahead_[index] = false;
  if (needs_[index] > 0) LookAgain();
}

void ForeseenLoads::LookAgain() {
  kept_.clear();
  arriving_.clear();
  std::ranges::fill(needs_, 0u);
  released_ = 0;
  step_ = next_;
  at_ = 0;
}

std::uint64_t ForeseenLoads::waiting() const {
  return static_cast<std::uint64_t>(std::ranges::count(ahead_, true));
}

Result<std::optional<std::uint64_t>> LayersForeseen(std::string_view predictor) {
  constexpr std::string_view kOracle = "oracle:";
  if (!predictor.starts_with(kOracle)) return std::optional<std::uint64_t>();
  const std::string_view text = predictor.substr(kOracle.size());
  if (text == "unlimited") return std::optional(ForeseenLoads::kUnlimited);
  std::uint64_t layers = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), layers);
  if (error != std::errc() || end != text.data() + text.size() || layers == 0) {
    return InvalidArgument("'{}': how far the oracle sees is a number of layers, or 'unlimited'",
                           predictor);
  }
  return std::optional(layers);
}

}  // namespace troupe
