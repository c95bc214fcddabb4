// Any text as a cluster's plan: a plan within the model that reads the same after it is written
// again, or an error in one line; and whatever it says, a node that follows it comes to an end
// within its memory.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "base/check.h"
#include "cluster/plan/cluster_plan.h"
#include "cluster/plan/holding_steps.h"

namespace {

constexpr troupe::ExpertGrid kGrid{.layers = 3, .experts = 6};
constexpr std::uint32_t kMostHeld = 4;

void Follow(const troupe::ClusterPlan::Node& node) {
  troupe::HoldingFacts facts{.grid = kGrid,
                             .held = std::vector<std::uint8_t>(kGrid.Count()),
                             .most_held = kMostHeld,
                             .may_go = [](troupe::ExpertId id) { return id.expert % 2 == 0; }};
  facts.held[0] = facts.held[7] = 1;
  for (int steps = 0;; ++steps) {
    TROUPE_CHECK(steps < 1000);
    const auto step = troupe::NextStep(node, facts);
    if (!step) return;
    if (const auto* release = std::get_if<troupe::ReleaseStep>(&*step)) {
      facts.held[kGrid.Index(release->id)] = 0;
      continue;
    }
    const auto& hold = std::get<troupe::HoldStep>(*step);
    for (const std::uint32_t expert : hold.experts)
      facts.held[kGrid.Index({hold.layer, expert})] = 1;
    TROUPE_CHECK(std::ranges::count(facts.held, 1) <= kMostHeld + troupe::HoldingFacts::kSwapSlots);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto plan = troupe::ParseClusterPlan(text, "cafe", kGrid, /*epoch=*/7);
  if (!plan.ok()) {
    TROUPE_CHECK(plan.status().message().find('\n') == std::string_view::npos);
    return 0;
  }
  const auto again =
      troupe::ParseClusterPlan(troupe::ToJson(*plan, kGrid), "cafe", kGrid, /*epoch=*/7);
  TROUPE_CHECK(again.ok() && *again == *plan);
  for (const troupe::ClusterPlan::Node& node : plan->nodes) Follow(node);
  return 0;
}
