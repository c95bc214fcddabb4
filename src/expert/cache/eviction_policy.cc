#include "expert/cache/eviction_policy.h"

#include "expert/cache/arc.h"
#include "expert/cache/echo.h"
#include "expert/cache/lfu.h"
#include "expert/cache/lru.h"
#include "expert/cache/score_window.h"

namespace troupe {

std::vector<std::string> RoutePolicyNames() { return {"lru", "lfu", "arc", "echo"}; }

std::vector<std::string> EvictionPolicyNames() {
  std::vector<std::string> names = RoutePolicyNames();
  names.emplace_back("score");
  return names;
}

Bytes EvictionPolicyBytes(std::string_view name, ExpertGrid grid, std::uint32_t sequences) {
  // The others keep a few words an expert.
  if (name == "score") return ScoreWindow::BytesFor(grid, ScoreWindow::kWindow);
  return name == "echo" ? sequences * EchoOfSequence::BytesFor(grid) : Bytes();
}

Result<std::unique_ptr<EvictionPolicy>> MakeEvictionPolicy(std::string_view name,
                                                           const CacheShape& shape,
                                                           const EchoSettings& echo) {
  using Made = std::unique_ptr<EvictionPolicy>;
  if (name == "lru") return Made(std::make_unique<Lru>(shape.grid));
  if (name == "lfu") return Made(std::make_unique<Lfu>(shape.grid));
  if (name == "arc") {
    const bool shared = shape.quotas.empty();
    return Made(std::make_unique<Arc>(
        shape.grid, shared ? std::vector<std::uint32_t>{shape.slots} : shape.quotas));
  }
  if (name == "echo") {
    return Made(std::make_unique<Echo>(shape.grid, shape.sequences, RouteHistory::kSteps, echo));
  }
  if (name == "score") {
    return Made(std::make_unique<ScoreWindow>(shape.grid, ScoreWindow::kWindow));
  }
  return InvalidArgument("'{}' is no cache policy, expected lru, lfu, arc, echo or score", name);
}

}  // namespace troupe
