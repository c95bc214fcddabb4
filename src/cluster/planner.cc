#include "cluster/planner.h"

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

class Average {
 public:
  void Add(double value) {
    sum_ += value;
    ++count_;
  }
  double Or(double otherwise) const {
    return count_ > 0 ? sum_ / static_cast<double>(count_) : otherwise;
  }

 private:
  double sum_ = 0;
  std::size_t count_ = 0;
};

double SecondsOfOneRow(const NodeMeasures& measured) {
  return measured.seconds_an_expert + measured.seconds_a_row;
}

// What no machine measures would have the placer refuse the whole cluster.
NodeMeasures WithinReason(NodeMeasures measured) {
  constexpr double kMostBytes = 1e13, kMostSeconds = 3600;
  const auto limit = [](double& value, double most) { value = value <= most ? value : 0; };
  limit(measured.disk_bytes_per_second, kMostBytes);
  limit(measured.seconds_an_expert, kMostSeconds);
  limit(measured.seconds_a_row, kMostSeconds);
  limit(measured.seconds_a_remote_row, kMostSeconds);
  for (NodeMeasures::Link& link : measured.links) {
    limit(link.round_trip_seconds, kMostSeconds);
    limit(link.bytes_per_second, kMostBytes);
  }
  return measured;
}

}  // namespace

void Planner::Begin(Nanos now, const std::optional<ClusterPlan>& plan) {
  told_.clear();
  came_ = is_back_ = false;
  plan_at_ = now + (plan ? rules_.forget_after : rules_.gather);
  awaited_.clear();
  if (!plan) return;
  for (const ClusterPlan::Node& node : plan->nodes) awaited_.insert(node.name);
  awaited_until_ = now + rules_.forget_after;
}

void Planner::OnReport(const std::string& name, const PeerReport& report) {
  const auto [entry, is_new] = told_.try_emplace(
      name, Told{.facts = {}, .activity = AgedActivity(rules_.half_life_seconds())});
  Told& told = entry->second;
  awaited_.erase(name);
  const auto most_held =
      static_cast<std::uint32_t>(report.expert_memory.count() / model_.expert_bytes);
  if (std::exchange(told.left_out, false)) is_back_ = true;
  came_ = came_ || is_new || told.facts.most_held != most_held;
  told.facts.name = name;
  told.facts.most_held = most_held;
  told.measured = WithinReason(report.measured);
  if (told.measured.disk_bytes_per_second > 0) {
    told.facts.load_bytes_per_second = told.measured.disk_bytes_per_second;
  }
  told.activity.Add(report.activations, report.seconds);
  const std::vector<double>& values = told.activity.values();
  const bool any = std::ranges::any_of(values, [](double value) { return value > 0; });
  told.facts.activations = any ? values : std::vector<double>();
}

void Planner::LeaveOut(std::span<const Present> present,
                       const std::optional<ClusterPlan>& current) {
  const auto is_present = [&](const std::string& name) {
    return std::ranges::find(present, name, &Present::name) != present.end();
  };
  for (auto& [name, told] : told_) told.left_out = !is_present(name);
  std::erase_if(told_, [&](const auto& entry) {
    return entry.second.left_out && (!current || current->Find(entry.first) == nullptr);
  });
}

bool Planner::AllAreBack() const {
  return std::ranges::none_of(told_, [](const auto& entry) { return entry.second.left_out; });
}

// The first plan as soon as all are known, and at last without those that do not come. Behind the
// last one that is back there is nobody to wait for.
bool Planner::IsDue(Nanos now, std::size_t expected, bool has_plan) {
  if (std::exchange(is_back_, false)) {
    tried_ = false;
    AllAreBack() ? PlanNow(now) : OnCame(now);
  }
  if (std::exchange(came_, false)) {
    tried_ = false;
    OnCame(now);
  }
  if (!awaited_.empty() && now < awaited_until_) return false;
  const bool all_here = !tried_ && told_.size() >= expected;
  if (now < plan_at_ && (has_plan || !all_here)) return false;
  tried_ = true;
  plan_at_ = now + rules_.plan_every;
  return true;
}

std::vector<std::string> Planner::Awaits(Nanos now) const {
  if (now >= awaited_until_) return {};
  return {awaited_.begin(), awaited_.end()};
}

bool Planner::MayHold(const std::string& name) const {
  const auto told = told_.find(name);
  return told == told_.end() || told->second.facts.most_held > 0;
}

void Planner::SetLinks(std::span<const Present> present, PlanFacts& facts) const {
  struct Pair {
    Average round_trip, speed;
  };
  Average greeting, round_trip, speed;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Pair> pairs;
  const auto place_of = [&](const std::string& name) {
    return static_cast<std::uint32_t>(std::ranges::find(facts.nodes, name, &NodeFacts::name) -
                                      facts.nodes.begin());
  };
  for (const Present& node : present) {
    if (node.round_trip_seconds) greeting.Add(*node.round_trip_seconds);
    const auto told = told_.find(node.name);
    if (told == told_.end()) continue;
    const std::uint32_t from = place_of(node.name);
    for (const NodeMeasures::Link& link : told->second.measured.links) {
      const std::uint32_t to = place_of(link.peer);
      if (from == to || std::max(from, to) >= facts.nodes.size()) continue;
      // A call goes there and comes back: which way is slow neither end can tell.
      Pair& pair = pairs[{std::min(from, to), std::max(from, to)}];
      if (link.round_trip_seconds > 0) {
        round_trip.Add(link.round_trip_seconds);
        pair.round_trip.Add(link.round_trip_seconds);
      }
      if (link.bytes_per_second > 0) {
        speed.Add(link.bytes_per_second);
        pair.speed.Add(link.bytes_per_second);
      }
    }
  }
  constexpr double kUsualRoundTrip = 1e-3, kUsualSpeed = 1e8;
  LinkTable& links = facts.links;
  links.usual = {.latency_seconds = round_trip.Or(greeting.Or(kUsualRoundTrip)),
                 .bytes_per_second = speed.Or(kUsualSpeed)};
  for (const auto& [ends, pair] : pairs) {
    const Link link{.latency_seconds = pair.round_trip.Or(links.usual.latency_seconds),
                    .bytes_per_second = pair.speed.Or(links.usual.bytes_per_second)};
    links.pairs[ends] = links.pairs[{ends.second, ends.first}] = link;
    if (model_.experts_travel && pair.speed.Or(0) > 0) {
      facts.fetch_bytes_per_second[ends] = link.bytes_per_second;
    }
  }
}

PlanFacts Planner::FactsOf(std::span<const Present> present) const {
  PlanFacts facts{.model = model_.fingerprint,
                  .grid = model_.grid,
                  .first_layer = model_.first_layer,
                  .experts_per_token = model_.experts_per_token,
                  .expert_bytes = model_.expert_bytes,
                  .nodes = {},
                  .links = {},
                  .fetch_bytes_per_second = {},
                  .copies = rules_.copies};
  for (const Present& node : present) {
    const auto told = told_.find(node.name);
    if (told == told_.end() || told->second.facts.most_held == 0) continue;
    facts.nodes.push_back(told->second.facts);
  }
  Average seconds;
  for (const NodeFacts& node : facts.nodes) {
    const double own = SecondsOfOneRow(told_.at(node.name).measured);
    if (own > 0) seconds.Add(own);
  }
  for (NodeFacts& node : facts.nodes) {
    const double own = SecondsOfOneRow(told_.at(node.name).measured);
    node.speed = own > 0 ? seconds.Or(own) / own : 1;
  }
  SetLinks(present, facts);
  return facts;
}

LatencyModel Planner::LatencyOf(const PlanFacts& facts) const {
  Average expert, row;
  for (const NodeFacts& node : facts.nodes) {
    const NodeMeasures& measured = told_.at(node.name).measured;
    if (SecondsOfOneRow(measured) <= 0) continue;
    expert.Add(measured.seconds_an_expert);
    row.Add(measured.seconds_a_row);
  }
  constexpr double kUsualExpert = 1e-4, kUsualRow = 1e-5;
  LatencyModel latency;
  latency.costs.expert = {.base = expert.Or(kUsualExpert), .each = row.Or(kUsualRow)};
  latency.costs.bytes_per_token = static_cast<double>(model_.row_bytes);
  return latency;
}

double Planner::SecondsPerRemoteRow(const PlanFacts& facts) const {
  Average remote;
  for (const NodeFacts& node : facts.nodes) {
    const NodeMeasures& measured = told_.at(node.name).measured;
    if (measured.seconds_a_remote_row > 0) remote.Add(measured.seconds_a_remote_row);
  }
  return remote.Or(facts.links.usual.latency_seconds);
}

std::optional<PlanJob> Planner::Job(std::span<const Present> present,
                                    const std::optional<ClusterPlan>& current) const {
  PlanFacts facts = FactsOf(present);
  if (facts.nodes.empty()) return std::nullopt;
  PlanJob job{.placer = rules_.placer,
              .facts = {},
              .latency = LatencyOf(facts),
              .seconds_per_remote_row = SecondsPerRemoteRow(facts),
              .current = current};
  for (const NodeFacts& node : facts.nodes) {
    const auto found = std::ranges::find(present, node.name, &Present::name);
    job.held.push_back(found->held);
    job.held.back().resize(model_.grid.Count());
  }
  job.facts = std::move(facts);
  return job;
}

}  // namespace troupe
