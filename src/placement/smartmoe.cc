// SmartMoE's placement, the part of it that the paper compares with: every expert once, each
// layer's experts in the order of their load to the device with the least of it, with as many
// experts of the layer on each device as on any other. Blind to which server's users cause the
// load.
#include <limits>
#include <numeric>

#include "placement/device_list.h"
#include "placement/device_packing.h"
#include "placement/placer.h"

namespace troupe {
namespace {

class SmartMoe final : public Placer {
 public:
  std::string_view Name() const override { return "smartmoe"; }
  Result<Placement> Place(const PlacementProblem& problem) const override;
};

Result<Placement> SmartMoe::Place(const PlacementProblem& problem) const {
  const std::vector<double> total = TotalActivations(problem);
  std::vector<DeviceRoom> rooms = ListDevices(problem);
  PlacementBuilder builder(problem);
  for (std::uint32_t layer = 0; layer < problem.experts.layers(); ++layer) {
    std::vector<ExpertIndex> experts(problem.experts.CountIn(layer));
    std::iota(experts.begin(), experts.end(), problem.experts.FirstOf(layer));
    std::stable_sort(experts.begin(), experts.end(),
                     [&](ExpertIndex a, ExpertIndex b) { return total[a] > total[b]; });
    const std::size_t most = (experts.size() + rooms.size() - 1) / rooms.size();
    // Layers run one after the other: load of another layer is no reason to spare a device.
    struct Held {
      double load = 0;
      std::size_t count = 0;
    };
    std::vector<Held> held(rooms.size());
    for (const ExpertIndex e : experts) {
      std::size_t best = rooms.size();
      double least = std::numeric_limits<double>::infinity();
      for (std::size_t d = 0; d < rooms.size(); ++d) {
        const double busy = (held[d].load + total[e]) / rooms[d].speed;
        if (held[d].count >= most || !builder.Fits(rooms[d], e)) continue;
        if (busy < least || (busy == least && rooms[d].free > rooms[best].free)) {
          best = d;
          least = busy;
        }
      }
      if (best == rooms.size()) continue;  // no room where the counts allow it: covered below
      builder.Put(rooms[best], e);
      held[best].load += total[e];
      ++held[best].count;
    }
  }
  Placement placement = std::move(builder).Finish();
  TROUPE_RETURN_IF_ERROR(CoverMissing(problem, placement));
  return placement;
}

}  // namespace

std::unique_ptr<Placer> MakeSmartMoe() { return std::make_unique<SmartMoe>(); }

}  // namespace troupe
