// How often each expert was chosen lately: counts what the routers choose, and turns that into
// shares when somebody looks. Who looks, and how often, is the caller's part.
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "expert/cache/eviction_policy.h"
#include "model/route_observer.h"

namespace troupe {

class RouteHeat final : public RouteObserver {
 public:
  RouteHeat(ExpertGrid grid, std::uint32_t top_k);

  void PassBegins(const PassFacts& pass) override;
  void Routed(std::uint32_t layer, std::span<const ExpertChoice> chosen,
              std::span<const float> scores) override;
  void PassEnded() override {}

  // The share of each layer's last tokens that chose each expert, by ExpertGrid::Index. Older
  // tokens count less: of those kMemory tokens ago a third of what the last ones do.
  std::span<const float> Look();

  static constexpr double kMemory = 64;
  // Tokens that are counted without a look. Nobody watches then, and counting rests.
  static constexpr std::uint32_t kMostUnseen = 1 << 16;

 private:
  ExpertGrid grid_;
  std::uint32_t top_k_;
  std::vector<std::uint32_t> tokens_;  // by layer, since the last look
  std::vector<std::uint32_t> counts_;  // by index, since then
  struct Rows {
    std::uint32_t first = 0, count = 0;
  };
  std::vector<Rows> sure_;  // of the pass under way: not of drafts, which may be no text
  std::vector<float> heat_;
};

}  // namespace troupe
