// Uniform (Megatron-LM's expert parallelism): every expert once, each layer's experts dealt evenly
// to all devices at random, whatever they hold, do or are asked for. A device without room is
// passed over.
#include <numeric>

#include "placement/device_list.h"
#include "placement/device_packing.h"
#include "placement/placer.h"

namespace troupe {
namespace {

class Uniform final : public Placer {
 public:
  explicit Uniform(std::uint64_t seed) : seed_(seed) {}
  std::string_view Name() const override { return "uniform"; }
  Result<Placement> Place(const PlacementProblem& problem) const override;

 private:
  std::uint64_t seed_;
};

Result<Placement> Uniform::Place(const PlacementProblem& problem) const {
  Rng rng(seed_);
  std::vector<DeviceRoom> rooms = ListDevices(problem);
  PlacementBuilder builder(problem);
  std::size_t next = 0;  // goes on from layer to layer, so that remainders even out
  for (std::uint32_t layer = 0; layer < problem.experts.layers(); ++layer) {
    std::vector<ExpertIndex> experts(problem.experts.CountIn(layer));
    std::iota(experts.begin(), experts.end(), problem.experts.FirstOf(layer));
    Shuffle(experts, rng);
    for (const ExpertIndex e : experts) {
      for (std::size_t tried = 0; tried < rooms.size(); ++tried) {
        DeviceRoom& room = rooms[next];
        next = (next + 1) % rooms.size();
        if (!builder.Fits(room, e)) continue;
        builder.Put(room, e);
        break;
      }
    }
  }
  Placement placement = std::move(builder).Finish();
  TROUPE_RETURN_IF_ERROR(CoverMissing(problem, placement));
  return placement;
}

}  // namespace

std::unique_ptr<Placer> MakeUniform(std::uint64_t seed) { return std::make_unique<Uniform>(seed); }

}  // namespace troupe
