// Redundance: every expert on a random device, then random duplicates up to each device's capacity.
#include <numeric>

#include "placement/device_list.h"
#include "placement/device_packing.h"
#include "placement/placer.h"

namespace troupe {
namespace {

class Redundance final : public Placer {
 public:
  explicit Redundance(std::uint64_t seed) : seed_(seed) {}
  std::string_view Name() const override { return "redundance"; }
  Result<Placement> Place(const PlacementProblem& problem) const override;

 private:
  std::uint64_t seed_;
};

Result<Placement> Redundance::Place(const PlacementProblem& problem) const {
  Rng rng(seed_);
  std::vector<DeviceRoom> rooms = ListDevices(problem);
  PlacementBuilder builder(problem);
  std::vector<ExpertIndex> experts(problem.experts.size());
  std::iota(experts.begin(), experts.end(), 0u);
  Shuffle(experts, rng);
  for (const ExpertIndex e : experts) {
    const std::size_t first = rng.Below(rooms.size());
    for (std::size_t i = 0; i < rooms.size(); ++i) {
      DeviceRoom& room = rooms[(first + i) % rooms.size()];
      if (!builder.Fits(room, e)) continue;
      builder.Put(room, e);
      break;
    }
  }
  Placement covering = std::move(builder).Finish();
  TROUPE_RETURN_IF_ERROR(CoverMissing(problem, covering));

  HolderTable holders(problem, covering);
  for (const DeviceRoom& room : ListDevices(problem)) {
    std::vector<ExpertIndex>& device = covering.experts[room.server][room.device];
    std::uint64_t free = room.free - UsedBytes(problem, device);
    Shuffle(experts, rng);
    for (const ExpertIndex e : experts) {
      if (holders.Holds(room.server, e) || problem.experts.BytesOf(e) > free) continue;
      holders.Add(room.server, e);
      device.push_back(e);
      free -= problem.experts.BytesOf(e);
    }
    std::sort(device.begin(), device.end());
  }
  return covering;
}

}  // namespace

std::unique_ptr<Placer> MakeRedundance(std::uint64_t seed) {
  return std::make_unique<Redundance>(seed);
}

}  // namespace troupe
