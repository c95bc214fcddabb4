#include "expert/placement/latency_objective.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace troupe {
namespace {

constexpr double kMostServersForPairs = 1024;  // a table of all pairs has to be kept

// 1 / (1 - rho) of queueing theory, continued as a straight line where it would run away: a search
// may pass through placements that overload something, and has to see which is worse.
double SlowDown(double rho) {
  constexpr double kKnee = 0.9;
  if (rho < kKnee) return 1 / (1 - rho);
  return 1 / (1 - kKnee) + (rho - kKnee) / ((1 - kKnee) * (1 - kKnee));
}

// Chance that at least one of `tokens` does what each does not with exp(-miss_log).
double AnyOf(double tokens, double miss_log) { return -std::expm1(-tokens * miss_log); }

}  // namespace

LatencyObjective::LatencyObjective(const PlacementProblem& problem, const LatencyModel& model)
    : problem_(problem), model_(model), passes_(model.passes) {
  if (passes_.empty()) {
    passes_.assign(problem.server_count(), {PassKind{}});
    has_rates_ = false;
  }
  TROUPE_CHECK(passes_.size() == problem.server_count());
  TROUPE_CHECK(model.prompts_per_second.empty() ||
               model.prompts_per_second.size() == problem.server_count());
  for (std::uint32_t n = 0; n < problem.server_count(); ++n) {
    speeds_.push_back(problem.servers[n].speed());
    for (const PassKind& kind : passes_[n]) all_passes_ += kind.per_second;
    std::vector<double> share(problem.experts.size(), 0);
    for (std::uint32_t l = 0; l < problem.experts.layers(); ++l) {
      const auto f = problem.Activations(n, l);
      const double sum = std::accumulate(f.begin(), f.end(), 0.0);
      for (std::size_t i = 0; i < f.size() && sum > 0; ++i) {
        // A chance of one would make the logarithm infinite.
        share[problem.experts.FirstOf(l) + i] =
            std::min(0.9999, problem.experts_per_token * f[i] / sum);
      }
    }
    std::vector<float> miss_log, touched;
    for (const double p : share) miss_log.push_back(static_cast<float>(-std::log1p(-p)));
    for (const double p : share) {
      for (const PassKind& kind : passes_[n]) {
        touched.push_back(static_cast<float>(AnyOf(kind.tokens, -std::log1p(-p))));
      }
    }
    share_.push_back(std::vector<float>(share.begin(), share.end()));
    miss_log_.push_back(std::move(miss_log));
    touched_.push_back(std::move(touched));
  }
  scratch_.visits.resize(problem.server_count());
}

void LatencyObjective::Collect(std::uint32_t server, std::uint32_t layer, const CallRoutes& routes,
                               Scratch& scratch) const {
  const std::vector<PassKind>& kinds = passes_[server];
  scratch.hosts.clear();
  const ExpertIndex first = problem_.experts.FirstOf(layer);
  const ExpertIndex end = first + problem_.experts.CountIn(layer);
  for (ExpertIndex e = first; e < end; ++e) {
    const double share = share_[server][e];
    if (share <= 0) continue;
    const float* touched = &touched_[server][e * kinds.size()];
    const std::uint32_t host = routes.HostOf(server, e);
    Visit& visit = scratch.visits[host];
    if (visit.assignments == 0) {
      scratch.hosts.push_back(host);
      visit.miss_log = 0;
      visit.experts.assign(kinds.size(), 0);
    }
    visit.assignments += share;
    visit.miss_log += miss_log_[server][e];
    for (std::size_t k = 0; k < kinds.size(); ++k) visit.experts[k] += touched[k];
  }
}

double LatencyObjective::TransferSeconds(std::uint32_t from, std::uint32_t to, double bytes,
                                         const Congestion& congestion) const {
  const Link& link = problem_.links.Between(from, to);
  double factor = 1;
  if (model_.sharing == LinkSharing::kEgress) {
    factor = congestion.egress_factor[from];
  } else if (!congestion.pair_factor.empty()) {
    factor = congestion.pair_factor[static_cast<std::size_t>(from) * problem_.server_count() + to];
  }
  return link.latency_seconds + bytes / link.bytes_per_second * factor;
}

double LatencyObjective::PassSeconds(std::uint32_t server, std::size_t kind,
                                     const Congestion& congestion, const Scratch& scratch) const {
  const double tokens = passes_[server][kind].tokens;
  std::vector<Call>& calls = scratch_.calls;
  calls.clear();
  for (const std::uint32_t host : scratch.hosts) {
    const Visit& visit = scratch.visits[host];
    const double chance = AnyOf(tokens, visit.miss_log);
    // What the call carries when it is made.
    const double experts = visit.experts[kind] / chance;
    const double assignments = tokens * visit.assignments / chance;
    const auto devices = static_cast<double>(problem_.servers[host].devices.size());
    const double lanes = std::clamp(experts, 1.0, devices);
    double seconds = congestion.host_wait[host] +
                     (model_.costs.expert.base * experts + model_.costs.expert.each * assignments) /
                         (speeds_[host] * lanes / devices);
    if (host != server) {
      const double there =
          tokens * AnyOf(1, visit.miss_log) / chance * model_.costs.bytes_per_token;
      const double back = assignments * model_.costs.bytes_per_token;
      seconds += TransferSeconds(server, host, there, congestion) +
                 model_.costs.call(there + back) + TransferSeconds(host, server, back, congestion);
    }
    calls.push_back({seconds, chance});
  }
  // The expected slowest of calls that are made independently of each other.
  std::sort(calls.begin(), calls.end(),
            [](const Call& a, const Call& b) { return a.seconds > b.seconds; });
  double expected = 0, none_slower = 1;
  for (const Call& call : calls) {
    expected += none_slower * call.chance * call.seconds;
    none_slower *= 1 - call.chance;
  }
  return expected;
}

double LatencyObjective::LayerSeconds(std::uint32_t server, std::uint32_t layer,
                                      const CallRoutes& routes,
                                      const Congestion& congestion) const {
  Collect(server, layer, routes, scratch_);
  double seconds = 0;
  for (std::size_t k = 0; k < passes_[server].size(); ++k) {
    seconds += passes_[server][k].per_second * PassSeconds(server, k, congestion, scratch_);
  }
  for (const std::uint32_t host : scratch_.hosts) scratch_.visits[host].assignments = 0;
  return seconds;
}

double LatencyObjective::ServerSeconds(std::uint32_t server, const CallRoutes& routes,
                                       const Congestion& congestion) const {
  double seconds = 0;
  for (std::uint32_t l = 0; l < problem_.experts.layers(); ++l) {
    seconds += LayerSeconds(server, l, routes, congestion);
  }
  return seconds;
}

double LatencyObjective::SecondsOfAPrompt(std::uint32_t server, double layer_seconds) const {
  double dense = 0;
  for (const PassKind& kind : passes_[server]) {
    dense += kind.per_second * model_.costs.dense(kind.tokens);
  }
  const auto devices = static_cast<double>(problem_.servers[server].devices.size());
  dense *= problem_.experts.layers() / (speeds_[server] / devices);
  return (layer_seconds + dense) / PromptRate(server);
}

Congestion LatencyObjective::Measure(const CallRoutes& routes) const {
  const std::uint32_t servers = problem_.server_count();
  const bool pairs = model_.sharing == LinkSharing::kPair && servers <= kMostServersForPairs;
  Congestion congestion{.host_wait = std::vector<double>(servers, 0),
                        .egress_factor = std::vector<double>(servers, 1),
                        .home_weight = std::vector<double>(servers, 1)};
  if (pairs) congestion.pair_factor.assign(static_cast<std::size_t>(servers) * servers, 1);
  if (!has_rates_) return congestion;
  std::vector<double> work(servers, 0), jobs(servers, 0), sent(servers, 0);
  std::vector<double> pair_sent(congestion.pair_factor.size(), 0);
  const auto send = [&](std::uint32_t from, std::uint32_t to, double bytes) {
    const double seconds = bytes / problem_.links.Between(from, to).bytes_per_second;
    sent[from] += seconds;
    if (pairs) pair_sent[static_cast<std::size_t>(from) * servers + to] += seconds;
  };
  const ServingCosts& costs = model_.costs;
  for (std::uint32_t n = 0; n < servers; ++n) {
    for (std::uint32_t l = 0; l < problem_.experts.layers(); ++l) {
      Collect(n, l, routes, scratch_);
      for (std::size_t k = 0; k < passes_[n].size(); ++k) {
        const auto [tokens, rate] = passes_[n][k];
        // Dense work runs on one device, and experts of the home server wait behind it.
        work[n] += rate * costs.dense(tokens);
        jobs[n] += rate;
        for (const std::uint32_t host : scratch_.hosts) {
          const Visit& visit = scratch_.visits[host];
          work[host] += rate * (costs.expert.base * visit.experts[k] +
                                costs.expert.each * tokens * visit.assignments);
          jobs[host] += rate * AnyOf(tokens, visit.miss_log);
          if (host == n) continue;
          send(n, host, rate * tokens * AnyOf(1, visit.miss_log) * costs.bytes_per_token);
          send(host, n, rate * tokens * visit.assignments * costs.bytes_per_token);
        }
      }
      for (const std::uint32_t host : scratch_.hosts) scratch_.visits[host].assignments = 0;
    }
  }
  for (std::uint32_t n = 0; n < servers; ++n) {
    const double busy = work[n] / speeds_[n];
    const auto devices = static_cast<double>(problem_.servers[n].devices.size());
    // M/M/1 of the mean job; several devices share the queue's length.
    if (jobs[n] > 0) {
      congestion.host_wait[n] = (SlowDown(busy) - 1) * (busy / jobs[n]) / devices;
    }
    congestion.egress_factor[n] = SlowDown(sent[n]);
    congestion.busiest_server = std::max(congestion.busiest_server, busy);
    if (model_.sharing == LinkSharing::kEgress) {
      congestion.busiest_link = std::max(congestion.busiest_link, sent[n]);
    }
  }
  for (std::size_t i = 0; i < pair_sent.size(); ++i) {
    congestion.pair_factor[i] = SlowDown(pair_sent[i]);
    congestion.busiest_link = std::max(congestion.busiest_link, pair_sent[i]);
  }
  for (std::uint32_t n = 0; n < servers; ++n) {
    if (PromptRate(n) <= 0) continue;
    // The slope of x + x (SlowDown(x) - 1) / 2, x being the share of time that a prompt is served.
    const double x = PromptRate(n) * SecondsOfAPrompt(n, ServerSeconds(n, routes, congestion));
    const double step = 1e-4;
    const auto cost = [](double at) { return at + at * (SlowDown(at) - 1) / 2; };
    congestion.home_weight[n] = (cost(x + step) - cost(x)) / step;
  }
  return congestion;
}

LatencyEstimate LatencyObjective::Evaluate(const HolderTable& holders) const {
  const CallRoutes routes(problem_, holders);
  const Congestion congestion = Measure(routes);
  LatencyEstimate estimate{.busiest_server = congestion.busiest_server,
                           .busiest_link = congestion.busiest_link};
  for (std::uint32_t n = 0; n < problem_.server_count(); ++n) {
    double seconds = ServerSeconds(n, routes, congestion), passes = 0;
    if (PromptRate(n) > 0) {
      // Prompts of one server differ little: half of what an M/M/1 queue waits, as M/D/1 does.
      const double prompt = SecondsOfAPrompt(n, seconds);
      seconds += PromptRate(n) * prompt * (SlowDown(PromptRate(n) * prompt) - 1) / 2;
    }
    for (const PassKind& kind : passes_[n]) passes += kind.per_second;
    estimate.seconds += seconds;
    estimate.by_server.push_back(passes > 0 ? seconds / passes : 0);
  }
  if (all_passes_ > 0) estimate.seconds /= all_passes_;
  return estimate;
}

}  // namespace troupe
