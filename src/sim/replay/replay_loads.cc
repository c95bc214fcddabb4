#include "sim/replay/replay_loads.h"

namespace troupe {
namespace {

// Only the quotient of size and speed counts.
constexpr Bytes kExpert = 1_MiB;
// A place whose costs are all 0 counts as not measured; this one may truly cost nothing.
constexpr double kLeastSeconds = 1e-12;

Bytes InBytes(double count) { return Bytes(static_cast<std::uint64_t>(count)); }

}  // namespace

ReplayLoads::ReplayLoads(const TraceHeader& header, const ReplayCosts& costs)
    : costs_(costs), link_(costs.latency_seconds), seconds_(header.layers) {
  const std::vector<std::uint64_t>& bytes =
      costs.expert_bytes.empty() ? header.expert_bytes : costs.expert_bytes;
  if (!bytes.empty()) weight_.resize(header.layers);
  for (std::size_t l = 0; l < header.moe_layers.size(); ++l) {
    if (!costs.load_seconds.empty()) seconds_[header.moe_layers[l]] = costs.load_seconds[l];
    if (!bytes.empty()) weight_[header.moe_layers[l]] = bytes[l];
  }
  if (!costs.second_lane_seconds) return;
  places_.push_back({.name = "the second lane",
                     .expert_seconds = std::max(*costs.second_lane_seconds, kLeastSeconds)});
}

double ReplayLoads::SecondsFor(std::uint32_t layer) const { return seconds_[layer]; }

double ReplayLoads::Rate(std::uint32_t layer) const {
  const double seconds = mean_.Mean().value_or(seconds_[layer]);
  return seconds > 0 ? AsDouble(kExpert) / seconds : 0;
}

AnswerCosts ReplayLoads::CostsFor(std::uint32_t layer) const {
  const double rate = Rate(layer);
  return {.full = kExpert,
          .low = {},
          .medium = {.latency_seconds = idle() ? costs_.latency_seconds : 0,
                     .bytes_per_second = rate,
                     .queued = InBytes(link_.SecondsAheadOfDemand(now_) * rate)},
          .local = {.busy_seconds = 0,
                    .first_row_seconds = costs_.expert_first_seconds,
                    .further_row_seconds = costs_.expert_further_seconds},
          .places = places_};
}

Bytes ReplayLoads::BytesLeft(ExpertId id) const {
  return InBytes(link_.SecondsLeft(id, now_) * Rate(id.layer));
}

void ReplayLoads::Begin(ExpertId id, std::uint32_t, ExpertCopy, Urgency urgency) {
  link_.Request(id, seconds_[id.layer], urgency == Urgency::kDemand, now_);
  mean_.Add(seconds_[id.layer]);
  ++loads_;
  if (!weight_.empty()) bytes_ += weight_[id.layer];
}

std::span<const LoadEnd> ReplayLoads::TakeEnded() {
  ids_.clear();
  ended_.clear();
  link_.AdvanceTo(now_, ids_);
  for (const ExpertId id : ids_) ended_.push_back({.id = id, .status = OkStatus()});
  return ended_;
}

}  // namespace troupe
