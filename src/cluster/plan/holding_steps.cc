#include "cluster/plan/holding_steps.h"

#include <algorithm>

#include "base/check.h"

namespace troupe {
namespace {

bool Wants(const ClusterPlan::Node& wanted, ExpertId id) {
  return id.layer < wanted.held.size() &&
         std::ranges::binary_search(wanted.held[id.layer], id.expert);
}

std::optional<ExpertId> ToLetGo(const ClusterPlan::Node& wanted, const HoldingFacts& facts) {
  std::optional<ExpertId> last;
  for (std::uint32_t layer = 0; layer < facts.grid.layers; ++layer) {
    for (std::uint32_t expert = 0; expert < facts.grid.experts; ++expert) {
      const ExpertId id{layer, expert};
      if (facts.held[facts.grid.Index(id)] == 0 || Wants(wanted, id)) continue;
      if (facts.held_elsewhere(id)) return id;
      last = id;
    }
  }
  return last;
}

}  // namespace

std::optional<HoldingStep> NextStep(const ClusterPlan::Node& wanted, const HoldingFacts& facts) {
  TROUPE_CHECK(facts.held.size() == facts.grid.Count() && facts.at_once > 0);
  const auto holds = static_cast<std::size_t>(std::ranges::count(facts.held, 1));
  const std::size_t room = facts.most_held - std::min<std::size_t>(facts.most_held, holds);
  for (std::uint32_t layer = 0; layer < wanted.held.size(); ++layer) {
    HoldStep step{.layer = layer, .experts = {}};
    for (const std::uint32_t expert : wanted.held[layer]) {
      if (facts.held[facts.grid.Index({layer, expert})] != 0) continue;
      if (step.experts.size() < std::min<std::size_t>(room, facts.at_once)) {
        step.experts.push_back(expert);
      }
    }
    if (!step.experts.empty()) return step;
  }
  if (const std::optional<ExpertId> id = ToLetGo(wanted, facts)) return ReleaseStep{*id};
  return std::nullopt;
}

}  // namespace troupe
