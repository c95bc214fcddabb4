#include "runtime/loader_choice.h"

#include <algorithm>

#include "expert/flow/medium.h"

namespace troupe {
namespace {

// Enough reads under way to keep a fast drive busy; more staging would only be taken from the
// cache.
constexpr Bytes kStagingGoal = 16_MiB;

MediumFacts MediumOf(Bytes slot, const CostModel& costs, const LinkSpeed& link) {
  MediumFacts medium{.expert = slot};
  if (costs.disk.measured()) {
    medium.reads = costs.disk.Behind(link.bytes_per_second, link.latency_seconds);
  } else if (link.bytes_per_second > 0) {
    medium.reads = LinkAlone(link.bytes_per_second, link.latency_seconds);
  }
  // The loop hands in reads between experts, each of which is read from memory once. What runs saw
  // of an expert's time would make another plan after each.
  if (costs.memory_bytes_per_second.measured()) {
    medium.away_seconds = static_cast<double>(slot.count()) / costs.memory_bytes_per_second.value;
  }
  return medium;
}

}  // namespace

LoaderChoice ChooseLoader(Bytes slot, const CostModel& costs, const LinkSpeed& link) {
  LoaderChoice choice;
  if (slot == Bytes()) return choice;
  const MediumFacts medium = MediumOf(slot, costs, link);
  const ReadShape shape = ShapeReads(medium);
  choice.options = {
      .piece = shape.piece,
      .prefetch_piece = shape.prefetch_piece,
      .staging = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(kStagingGoal / slot, 2, 8)),
      .prefetch_reads = shape.prefetch_reads};
  if (medium.reads.measured()) {
    choice.medium = {.latency_seconds = medium.reads.LoneSeconds(1_B),
                     .bytes_per_second = medium.reads.BytesPerSecond(shape.piece)};
  }
  choice.reason = Describe(medium, shape);
  return choice;
}

}  // namespace troupe
