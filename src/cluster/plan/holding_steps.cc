#include "cluster/plan/holding_steps.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/check.h"

namespace troupe {
namespace {

// The experts for which `is` says so: first those that the order names.
template <typename Is>
std::vector<ExpertId> InOrder(std::span<const ExpertId> order, const HoldingFacts& facts,
                              const Is& is) {
  std::vector<ExpertId> all;
  std::vector<std::uint8_t> named(facts.grid.Count());
  const auto add = [&](ExpertId id) {
    if (!is(id) || std::exchange(named[facts.grid.Index(id)], 1) != 0) return;
    all.push_back(id);
  };
  for (const ExpertId id : order) add(id);
  for (std::uint32_t layer = 0; layer < facts.grid.layers; ++layer) {
    for (std::uint32_t expert = 0; expert < facts.grid.experts; ++expert) add({layer, expert});
  }
  return all;
}

// Those of the first one's layer that come soon come with it.
HoldStep Bring(std::span<const ExpertId> coming, std::size_t most) {
  constexpr std::size_t kSteps = 4;
  HoldStep step{.layer = coming.front().layer, .experts = {}};
  for (const ExpertId id : coming.first(std::min(coming.size(), kSteps * most))) {
    if (id.layer == step.layer && step.experts.size() < most) step.experts.push_back(id.expert);
  }
  return step;
}

}  // namespace

std::optional<HoldingStep> NextStep(const ClusterPlan::Node& wanted, const HoldingFacts& facts) {
  TROUPE_CHECK(facts.held.size() == facts.grid.Count() && facts.at_once > 0);
  const auto is_held = [&](ExpertId id) { return facts.held[facts.grid.Index(id)] != 0; };
  const auto holds = static_cast<std::size_t>(std::ranges::count(facts.held, 1));
  const std::size_t room = facts.most_held - std::min<std::size_t>(facts.most_held, holds);
  const std::vector<ExpertId> coming =
      InOrder(wanted.come, facts, [&](ExpertId id) { return wanted.Wants(id) && !is_held(id); });
  if (room > 0 && !coming.empty()) {
    return Bring(coming, std::min<std::size_t>(room, facts.at_once));
  }
  const std::vector<ExpertId> going =
      InOrder(wanted.go, facts, [&](ExpertId id) { return is_held(id) && !wanted.Wants(id); });
  if (const auto free = std::ranges::find_if(going, facts.may_go); free != going.end()) {
    return ReleaseStep{*free};
  }
  const std::size_t most = std::size_t{facts.most_held} + HoldingFacts::kSwapSlots;
  if (going.empty() || coming.empty() || holds >= most) return std::nullopt;
  return Bring(coming, most - holds);
}

}  // namespace troupe
