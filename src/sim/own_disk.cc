#include "sim/own_disk.h"

#include <utility>

namespace troupe {

DiskLane::DiskLane(const ExpertTable& experts, const OwnDisk& disk, const LinearCost& expert,
                   double speed)
    : experts_(experts),
      disk_(disk),
      local_{.first_row_seconds = (expert.base + expert.each) / speed,
             .further_row_seconds = expert.each / speed},
      link_(disk.latency_seconds) {}

double DiskLane::SecondsOf(ExpertId id) const {
  const std::uint64_t bytes = experts_.BytesOf(experts_.FirstOf(id.layer) + id.expert);
  return static_cast<double>(bytes) / disk_.bytes_per_second;
}

void DiskLane::Begin(ExpertId id, std::uint32_t, ExpertCopy, Urgency urgency) {
  if (takes_no_time_) {
    at_once_.push_back({.id = id, .status = OkStatus()});
    return;
  }
  ++loads_;
  link_.Request(id, SecondsOf(id), urgency == Urgency::kDemand, now_);
}

// A layer's experts are taken to be as large as its first.
double DiskLane::SecondsFor(std::uint32_t layer) const { return SecondsOf({layer, 0}); }

AnswerCosts DiskLane::CostsFor(std::uint32_t layer) const {
  const double queued = link_.SecondsAheadOfDemand(now_) * disk_.bytes_per_second;
  AnswerCosts costs{.full = {},
                    .low = {},
                    .medium = {.latency_seconds = idle() ? disk_.latency_seconds : 0,
                               .bytes_per_second = disk_.bytes_per_second,
                               .queued = Bytes(static_cast<std::uint64_t>(queued))},
                    .local = local_,
                    .places = places_,
                    .holders = holders_};
  // Without a slot nothing can be loaded.
  if (takes_no_time_ || disk_.free_slots > 0)
    costs.full = Bytes(experts_.BytesOf(experts_.FirstOf(layer)));
  return costs;
}

Bytes DiskLane::BytesLeft(ExpertId id) const {
  return Bytes(static_cast<std::uint64_t>(link_.SecondsLeft(id, now_) * disk_.bytes_per_second));
}

std::vector<LoadEnd> DiskLane::TakeEnded() {
  std::vector<LoadEnd> ended = std::exchange(at_once_, {});
  std::vector<ExpertId> ids;
  link_.AdvanceTo(now_, ids);
  for (const ExpertId id : ids) ended.push_back({.id = id, .status = OkStatus()});
  return ended;
}

}  // namespace troupe
