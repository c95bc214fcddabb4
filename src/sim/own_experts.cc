#include "sim/own_experts.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "expert/cache/quotas.h"

namespace troupe {
namespace {

// In a larger cluster only the holder that the routes name is considered: comparing hundreds of
// holders for each layer would take too long.
constexpr std::uint32_t kFewServers = 8;
// A round trip that takes nothing would count as not measured.
constexpr double kLeastRoundTrip = 1e-6;

Nanos InNanos(double seconds) { return static_cast<Nanos>(std::llround(seconds * 1e9)); }

// Such a server has one device.
double SpeedOfDevice(const PlacementProblem& problem, std::uint32_t server) {
  return problem.servers[server].devices.front().speed;
}

CacheShape ShapeOf(const OwnExpertsFacts& facts) {
  const PlacementProblem& problem = facts.problem;
  CacheShape shape{.grid = {.layers = problem.experts.layers()},
                   .sequences = facts.prompts_at_once};
  for (std::uint32_t l = 0; l < shape.grid.layers; ++l) {
    shape.grid.experts = std::max(shape.grid.experts, problem.experts.CountIn(l));
  }
  const auto held = facts.map.holders().On(facts.server).size();
  // A cache of nothing is none: what is never loaded needs no slot.
  shape.slots = std::max(1u, facts.disk.free_slots + static_cast<std::uint32_t>(held));
  // As the engine shares its slots: some belong to nobody, the others to each layer alike.
  const std::uint32_t spare = std::min(problem.experts_per_token, shape.slots / 4);
  shape.quotas = EvenQuotas(shape.grid, 0, shape.slots, spare);
  return shape;
}

}  // namespace

OwnExperts::OwnExperts(const OwnExpertsFacts& facts)
    : facts_(facts),
      speed_(SpeedOfDevice(facts.problem, facts.server)),
      pass_(ShapeOf(facts).grid.experts),
      lane_(facts.problem.experts, facts.disk, facts.costs.expert, speed_),
      flow_(ShapeOf(facts), MakeEvictionPolicy(facts.disk.policy, ShapeOf(facts)).value(),
            MakeForesight(), lane_,
            {.routing = {.experts = ShapeOf(facts).grid.experts,
                         .top_k = facts.problem.experts_per_token}}) {
  HoldPlaced();
}

std::unique_ptr<Predictor> OwnExperts::MakeForesight() {
  if (!facts_.disk.reads_ahead || facts_.disk.free_slots == 0) return nullptr;
  return std::make_unique<Oracle>([this] { return Foresee(); });
}

std::optional<Oracle::Step> OwnExperts::Foresee() {
  const std::uint32_t layer = foreseen_++;
  return Oracle::Step{.layer = layer, .chosen = pass_.DemandsOf(layer)};
}

// What the placement gives the server is pinned, and takes nothing of the other slots' shares.
void OwnExperts::HoldPlaced() {
  const std::vector<ExpertIndex> placed = facts_.map.holders().On(facts_.server);
  const CacheShape& shape = flow_.cache().shape();
  lane_.set_at_once(true);
  std::vector<std::uint32_t> quotas(shape.grid.layers);
  for (std::uint32_t layer = 0; layer < shape.grid.layers; ++layer) {
    std::vector<ExpertDemand> demands;
    for (const ExpertIndex e : placed) {
      const ExpertId id = facts_.problem.experts.Id(e);
      if (id.layer == layer) demands.push_back({.expert = id.expert, .tokens = 1});
    }
    const DemandId demand = flow_.Ask(layer, demands, 0, DemandOf::kHolding);
    while (!flow_.IsDone(demand)) {
      flow_.Continue();
      Collect(0);
      TROUPE_CHECK(!flow_.MustWait(demand));
      const Result<std::span<const Given>> gave = flow_.Give(demand);
      for (const Given& given : gave.value()) {
        held_.push_back(flow_.Hold({layer, given.expert}));
      }
    }
    flow_.Close(demand);
    quotas[layer] = static_cast<std::uint32_t>(demands.size() + std::size_t{shape.quotas[layer]} *
                                                                    facts_.disk.free_slots /
                                                                    std::max(1u, shape.slots));
  }
  lane_.set_at_once(false);
  flow_.set_quotas(std::move(quotas));
}

bool OwnExperts::BeginPass(double now) {
  if (!pass_.Begin()) return false;
  foreseen_ = 0;
  ++result_.passes;
  result_.parts += pass_.parts().size();
  flow_.OnPassBegins(pass_.Facts());
  Settle(now);
  return true;
}

void OwnExperts::Collect(double now) {
  lane_.set_now(now);
  flow_.OnLoadsEnded(lane_.TakeEnded(), InNanos(now));
}

PeerSpeed& OwnExperts::SpeedOf(std::uint32_t host, double now) {
  const auto found = speeds_.find(host);
  if (found != speeds_.end()) return found->second;
  const LinkTable& links = facts_.problem.links;
  const double round_trip = links.Between(facts_.server, host).latency_seconds +
                            links.Between(host, facts_.server).latency_seconds +
                            facts_.costs.call.base;
  return speeds_
      .try_emplace(host, facts_.problem.servers[host].name, std::max(round_trip, kLeastRoundTrip),
                   InNanos(now))
      .first->second;
}

std::vector<std::uint32_t> OwnExperts::HoldersOf(ExpertIndex e) const {
  std::vector<std::uint32_t> holders;
  if (facts_.problem.server_count() > kFewServers) {
    const std::uint32_t host = facts_.map.routes().HostOf(facts_.server, e);
    if (host != CallRoutes::kNobody) holders.push_back(host);
    return holders;
  }
  for (std::uint32_t n = 0; n < facts_.problem.server_count(); ++n) {
    if (n != facts_.server && facts_.map.holders().Holds(n, e)) holders.push_back(n);
  }
  return holders;
}

void OwnExperts::FindPlaces(std::uint32_t layer, std::span<const ExpertDemand> demands,
                            double now) {
  const std::size_t row_bytes = static_cast<std::size_t>(facts_.costs.BytesBack(1));
  places_.clear();
  hosts_.clear();
  places_of_.assign(flow_.cache().shape().grid.experts, {});
  const bool shares = judge_.MayShare(pass_.tokens(), InNanos(now)) || facts_.disk.free_slots == 0;
  result_.rested += shares ? 0 : 1;
  for (const ExpertDemand& demand : demands) {
    if (!shares || flow_.cache().Find({layer, demand.expert}) == Residence::kResident) continue;
    for (const std::uint32_t host :
         HoldersOf(facts_.problem.experts.FirstOf(layer) + demand.expert)) {
      auto at = std::ranges::find(hosts_, host);
      if (at == hosts_.end()) {
        places_.push_back(SpeedOf(host, now).Expected(InNanos(now), row_bytes));
        at = hosts_.insert(hosts_.end(), host);
      }
      places_of_[demand.expert].push_back(static_cast<std::uint32_t>(at - hosts_.begin()));
    }
  }
  holders_.assign(places_of_.begin(), places_of_.end());
  lane_.set_places(places_, holders_);
}

OwnExperts::Pairs OwnExperts::Ask(std::uint32_t layer, double now) {
  Collect(now);
  layer_ = layer;
  const std::vector<ExpertDemand> demands = pass_.DemandsOf(layer);
  if (pass_.parts().size() > 1) flow_.OnCounted(layer, pass_.CountsOf(layer));
  FindPlaces(layer, demands, now);
  Pairs pairs;
  rows_.assign(flow_.cache().shape().grid.experts, 0);
  for (const ExpertDemand& demand : demands) {
    const ExpertIndex e = facts_.problem.experts.FirstOf(layer) + demand.expert;
    const bool here = flow_.cache().Find({layer, demand.expert}) == Residence::kResident;
    (here ? pairs.local : pairs.loaded) += demand.tokens;
    result_.slot_hits += here && !facts_.map.holders().Holds(facts_.server, e) ? 1 : 0;
    rows_[demand.expert] = demand.tokens;
  }
  demand_ = flow_.Ask(layer, demands, InNanos(now));
  const PlannedMisses& planned = flow_.Planned(*demand_);
  asked_at_.reset();
  if (planned.had_choice && planned.all_local_seconds > 0) asked_at_ = now;
  for (const AnsweredElsewhere& miss : flow_.Elsewhere(*demand_)) {
    pairs.loaded -= rows_[miss.expert];
    pairs.remote += rows_[miss.expert];
  }
  AskOthers(now);
  if (layer + 1 < flow_.cache().shape().grid.layers) flow_.OnForecast(layer + 1, 1, {});
  return pairs;
}

void OwnExperts::AskOthers(double now) {
  std::vector<std::vector<PeerIndex>> choices;
  std::vector<AskedExpert> asked;
  const std::span<const AnsweredElsewhere> elsewhere = flow_.Elsewhere(*demand_);
  for (const AnsweredElsewhere& miss : elsewhere) {
    choices.push_back(places_of_[miss.expert]);
    std::ranges::sort(choices.back(), {}, [&](PeerIndex place) {
      const Place& at = places_[place];
      return std::pair(place != miss.place, at.queued_seconds + at.latency_seconds);
    });
  }
  for (std::size_t i = 0; i < elsewhere.size(); ++i) {
    asked.push_back({.expert = elsewhere[i].expert,
                     .rows = rows_[elsewhere[i].expert],
                     .holders = choices[i],
                     .load_seconds = elsewhere[i].load_seconds});
  }
  calls_.Ask(asked, places_);
  Settle(now);
}

void OwnExperts::Settle(double now) {
  Collect(now);
  if (!demand_) return flow_.Continue();  // what is read ahead
  for (const PeerCallId late : calls_.OnTime(InNanos(now))) {
    const SentCall& call = sent_.at(late);
    SpeedOf(call.host, now).OnLate(now - call.at, InNanos(now));
    ++result_.late_calls;
  }
  for (const std::uint32_t expert : calls_.TakeToLoad()) flow_.TakeBack(*demand_, expert);
}

std::vector<OwnExperts::Call> OwnExperts::TakeCalls(double now) {
  std::vector<Call> calls;
  for (const CallToSend& send : calls_.TakeCalls(InNanos(now))) {
    const std::uint32_t host = hosts_[send.peer];
    const ChosenRows rows = pass_.RowsOf(layer_, send.experts);
    Call call{.id = send.call,
              .experts = send.experts,
              .visit = {.host = host, .tokens = rows.tokens, .assignments = rows.assignments}};
    double seconds = 0;
    for (const std::uint32_t expert : send.experts) seconds += facts_.costs.expert(rows_[expert]);
    call.visit.jobs = {{.device = facts_.map.FirstDevice(host),
                        .seconds = seconds / SpeedOfDevice(facts_.problem, host)}};
    sent_[send.call] = {.host = host, .at = now};
    calls.push_back(std::move(call));
  }
  for (const CallToCancel& cancel : calls_.TakeCancels()) {
    cancelled_.insert(cancel.call);
    ++result_.called_off;
  }
  return calls;
}

void OwnExperts::OnAnswered(const Call& call, CallTimes times, double now) {
  times.row_bytes = static_cast<std::size_t>(facts_.costs.BytesBack(1));
  SpeedOf(call.visit.host, now).OnAnswered(times, InNanos(now));
  sent_.erase(call.id);
  cancelled_.erase(call.id);
  for (const std::uint32_t expert : call.experts) {
    if (!calls_.OnAnswered(call.id, expert)) continue;
    // It was late and is loaded by now, or its load goes on for whoever wants it next.
    if (flow_.Waits(*demand_, expert)) flow_.GiveAway(*demand_, expert);
  }
  calls_.OnRefused(call.id);  // of nothing: it owes no more
  Settle(now);
}

void OwnExperts::OnLost(std::uint32_t host, double now) {
  std::erase_if(sent_, [&](const auto& sent) {
    if (sent.second.host != host) return false;
    calls_.OnRefused(sent.first);
    cancelled_.erase(sent.first);
    return true;
  });
  Settle(now);
}

bool OwnExperts::TakeCancelled(PeerCallId id) {
  if (cancelled_.erase(id) == 0) return false;
  sent_.erase(id);
  return true;
}

std::optional<double> OwnExperts::Compute(double now) {
  if (computes_ || !demand_) return std::nullopt;
  flow_.LetGo(*demand_);
  flow_.Continue();
  Collect(now);
  if (flow_.IsDone(*demand_) || flow_.MustWait(*demand_)) return std::nullopt;
  double seconds = 0;
  const Result<std::span<const Given>> given = flow_.Give(*demand_);
  TROUPE_CHECK(given.ok());
  if (given->empty()) return std::nullopt;  // there is no slot, and others are asked
  for (const Given& expert : *given) {
    seconds += facts_.costs.expert(rows_[expert.expert]) / speed_;
    calls_.OnLoaded(expert.expert);
  }
  computes_ = true;
  return seconds;
}

bool OwnExperts::LayerIsDone() const {
  return demand_ && !computes_ && flow_.IsDone(*demand_) && calls_.waiting() == 0;
}

void OwnExperts::EndLayer(double now) {
  const PlannedMisses& planned = flow_.Planned(*demand_);
  if (asked_at_) {
    judge_.OnLayer({.layer = layer_,
                    .rows = pass_.tokens(),
                    .misses = planned.misses,
                    .elsewhere = planned.elsewhere,
                    .all_local_seconds = planned.all_local_seconds,
                    .planned_seconds = planned.seconds,
                    .took_seconds = now - *asked_at_},
                   InNanos(now));
  }
  calls_.Forget();
  flow_.Close(*std::exchange(demand_, std::nullopt));
  Settle(now);
}

double OwnExperts::NextTime() const {
  const std::optional<Nanos> late = demand_ ? calls_.NextTime() : std::nullopt;
  const double call = late ? static_cast<double>(*late) * 1e-9 : kNever;
  return std::min(lane_.NextEnd(), call);
}

DiskResult OwnExperts::Counts() const {
  DiskResult result = result_;
  result.loads = lane_.loads();
  result.ahead = flow_.prefetch().stats().loads;
  result.busy_seconds = lane_.busy_seconds();
  return result;
}

}  // namespace troupe
