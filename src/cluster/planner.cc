#include "cluster/planner.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace troupe {

void Planner::Begin(Nanos now, bool has_plan) {
  told_.clear();
  came_ = false;
  plan_at_ = now + (has_plan ? rules_.forget_after : rules_.gather);
}

void Planner::OnReport(const std::string& name, const PeerReport& report) {
  const auto [entry, is_new] = told_.try_emplace(
      name, Told{.facts = {}, .activity = AgedActivity(rules_.half_life_seconds)});
  Told& told = entry->second;
  const auto most_held =
      static_cast<std::uint32_t>(report.expert_memory.count() / model_.expert_bytes);
  came_ = came_ || is_new || told.facts.most_held != most_held;
  told.facts.name = name;
  told.facts.most_held = most_held;
  if (report.disk_bytes_per_second > 0) {
    told.facts.load_bytes_per_second = report.disk_bytes_per_second;
  }
  told.activity.Add(report.activations, report.seconds);
  const std::vector<double>& values = told.activity.values();
  const bool any = std::ranges::any_of(values, [](double value) { return value > 0; });
  told.facts.activations = any ? values : std::vector<double>();
}

// The first plan as soon as all are known, and at last without those that do not come.
bool Planner::IsDue(Nanos now, std::size_t expected, bool has_plan) {
  if (std::exchange(came_, false)) OnCame(now);
  const bool all_here = told_.size() >= expected;
  if (now < plan_at_ && (has_plan || !all_here)) return false;
  plan_at_ = now + rules_.plan_every;
  return true;
}

Result<std::optional<ClusterPlan>> Planner::Plan(std::span<const Present> present,
                                                 const std::optional<ClusterPlan>& current,
                                                 std::uint64_t epoch) const {
  PlanFacts facts{.grid = model_.grid,
                  .first_layer = model_.first_layer,
                  .experts_per_token = model_.experts_per_token,
                  .expert_bytes = model_.expert_bytes,
                  .nodes = {},
                  .link = {.latency_seconds = 1e-3, .bytes_per_second = 1e8},
                  .copies = rules_.copies};
  double round_trips = 0;
  std::size_t trips = 0;
  for (const Present& node : present) {
    const auto told = told_.find(node.name);
    if (told == told_.end() || told->second.facts.most_held == 0) continue;
    facts.nodes.push_back(told->second.facts);
    if (!node.round_trip_seconds) continue;
    round_trips += *node.round_trip_seconds;
    ++trips;
  }
  if (facts.nodes.empty()) return std::optional<ClusterPlan>();
  if (trips > 0) facts.link.latency_seconds = round_trips / static_cast<double>(trips);
  const auto placer = MakePlacer(rules_.placer, {});
  TROUPE_CHECK(placer.ok());  // checked before a node begins
  TROUPE_ASSIGN_OR_RETURN(ClusterPlan plan, MakePlan(facts, **placer, epoch));
  if (current && !PaysToAdopt(facts, *current, plan, facts.link.latency_seconds)) {
    return std::optional<ClusterPlan>();
  }
  return std::optional(std::move(plan));
}

}  // namespace troupe
