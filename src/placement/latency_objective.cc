#include "placement/latency_objective.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace troupe {
namespace {

constexpr double kMostServersForPairs = 1024;  // a table of all pairs has to be kept

// 1 / (1 - rho) of queueing theory, continued as a straight line where it would grow without limit.
// A search may pass through placements that overload something, and must see which is worse.
double SlowDown(double rho) {
  constexpr double kKnee = 0.9;
  if (rho < kKnee) return 1 / (1 - rho);
  return 1 / (1 - kKnee) + (rho - kKnee) / ((1 - kKnee) * (1 - kKnee));
}

// The greatest of n exponential times of mean 1: 1 + 1/2 + ... + 1/n, also between whole n.
double SlowestOf(double n) { return std::log1p((std::exp(1.0) - 1) * std::max(1.0, n)); }

// The chance that at least one of `tokens` goes there, if each does not with chance exp(-miss_log).
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

// Sums up by host what a pass of this server needs of a layer. Everything else is computed from
// these few numbers, so that the experts are looked at once for all kinds of passes.
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

double LatencyObjective::CallFactor(std::uint32_t from, std::uint32_t to,
                                    const Congestion& congestion) const {
  if (model_.sharing == LinkSharing::kEgress) return congestion.egress[from].own_factor;
  if (congestion.pair_factor.empty()) return 1;
  return congestion.pair_factor[static_cast<std::size_t>(from) * problem_.server_count() + to];
}

double LatencyObjective::AnswerWait(std::uint32_t from, std::uint32_t to, double seconds,
                                    const Congestion& congestion) const {
  if (model_.sharing == LinkSharing::kPair) {
    return seconds * (CallFactor(from, to, congestion) - 1);
  }
  // An answer that meets the host's own calls shares the link with all of them, until the shorter
  // of the two is through.
  const Egress& egress = congestion.egress[from];
  return SlowDown(egress.own + egress.answers) *
         (egress.answers * seconds +
          egress.own * std::min(egress.own_calls * seconds, egress.own_seconds));
}

// Calls of one layer begin together. Where they share what their server sends, a call's bytes are
// through when it and all smaller ones are, and as much of each larger one.
void LatencyObjective::AddSending(std::vector<Call>& calls) const {
  if (model_.sharing == LinkSharing::kPair) {
    for (Call& call : calls) call.seconds += call.there * call.each;
    return;
  }
  std::sort(calls.begin(), calls.end(),
            [](const Call& a, const Call& b) { return a.there < b.there; });
  double larger = 0, smaller_bytes = 0;
  for (const Call& call : calls) larger += call.chance;
  for (Call& call : calls) {
    larger -= call.chance;
    call.seconds += (smaller_bytes + call.there * (1 + larger)) * call.each;
    smaller_bytes += call.chance * call.there;
  }
}

// Waits vary about their mean, as exponential ones do, and the layer waits for the slowest of all:
// longer, the more calls there are whose waits are about as long as the longest.
void LatencyObjective::AddWaits(std::vector<Call>& calls) {
  double sum = 0, longest = 0;
  for (const Call& call : calls) {
    sum += call.chance * call.wait;
    longest = std::max(longest, call.wait);
  }
  if (longest <= 0) return;
  const double times = SlowestOf(sum / longest);
  for (Call& call : calls) call.seconds += times * call.wait;
}

double LatencyObjective::PassSeconds(std::uint32_t server, std::size_t kind,
                                     const Congestion& congestion, const Scratch& scratch) const {
  const double tokens = passes_[server][kind].tokens;
  std::vector<Call>& calls = scratch_.calls;
  calls.clear();
  for (const std::uint32_t host : scratch.hosts) {
    const Visit& visit = scratch.visits[host];
    Call call{.chance = AnyOf(tokens, visit.miss_log)};
    // Expectations given that the call is made, hence divided by its chance.
    const double experts = visit.experts[kind] / call.chance;
    const double assignments = tokens * visit.assignments / call.chance;
    const auto devices = static_cast<double>(problem_.servers[host].devices.size());
    const double lanes = std::clamp(experts, 1.0, devices);
    call.seconds = (model_.costs.expert.base * experts + model_.costs.expert.each * assignments) /
                   (speeds_[host] * lanes / devices);
    call.wait = host == server ? congestion.home_wait[host] : congestion.host_wait[host];
    if (host != server) {
      call.there = tokens * AnyOf(1, visit.miss_log) / call.chance * model_.costs.bytes_per_token;
      const double back = model_.costs.BytesBack(assignments);
      const Link &out = problem_.links.Between(server, host),
                 &in = problem_.links.Between(host, server);
      call.each = CallFactor(server, host, congestion) / out.bytes_per_second;
      const double answer = back / in.bytes_per_second;
      call.seconds +=
          out.latency_seconds + model_.costs.call(call.there + back) + in.latency_seconds + answer;
      call.wait += AnswerWait(host, server, answer, congestion);
    }
    calls.push_back(call);
  }
  AddSending(calls);
  AddWaits(calls);
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
                        .home_wait = std::vector<double>(servers, 0),
                        .egress = std::vector<Egress>(servers),
                        .home_weight = std::vector<double>(servers, 1)};
  if (pairs) congestion.pair_factor.assign(static_cast<std::size_t>(servers) * servers, 1);
  if (!has_rates_) return congestion;
  std::vector<double> work(servers, 0), jobs(servers, 0), own_work(servers, 0),
      own_jobs(servers, 0);
  std::vector<double> pair_sent(congestion.pair_factor.size(), 0);
  const auto seconds_of = [&](std::uint32_t from, std::uint32_t to, double bytes) {
    const double seconds = bytes / problem_.links.Between(from, to).bytes_per_second;
    if (pairs) pair_sent[static_cast<std::size_t>(from) * servers + to] += seconds;
    return seconds;
  };
  const ServingCosts& costs = model_.costs;
  for (std::uint32_t n = 0; n < servers; ++n) {
    for (std::uint32_t l = 0; l < problem_.experts.layers(); ++l) {
      Collect(n, l, routes, scratch_);
      for (std::size_t k = 0; k < passes_[n].size(); ++k) {
        const auto [tokens, rate] = passes_[n][k];
        // Dense work runs on one device, and experts of the home server wait behind it.
        own_work[n] += rate * costs.dense(tokens);
        own_jobs[n] += rate;
        double sending = 0, calls = 0;  // of these passes, in a second; of one of them
        for (const std::uint32_t host : scratch_.hosts) {
          const Visit& visit = scratch_.visits[host];
          const double seconds = rate * (costs.expert.base * visit.experts[k] +
                                         costs.expert.each * tokens * visit.assignments);
          (host == n ? own_work : work)[host] += seconds;
          (host == n ? own_jobs : jobs)[host] += rate * AnyOf(tokens, visit.miss_log);
          if (host == n) continue;
          const double there = rate * tokens * AnyOf(1, visit.miss_log) * costs.bytes_per_token;
          sending += seconds_of(n, host, there);
          calls += AnyOf(tokens, visit.miss_log);
          congestion.egress[host].answers +=
              seconds_of(host, n, costs.BytesBack(rate * tokens * visit.assignments));
        }
        // Means as an answer meets them: weighted by how long a pass sends.
        Egress& egress = congestion.egress[n];
        egress.own += sending;
        egress.own_calls += sending * calls;
        if (rate > 0) egress.own_seconds += sending * sending / rate;
      }
      for (const std::uint32_t host : scratch_.hosts) scratch_.visits[host].assignments = 0;
    }
  }
  for (std::uint32_t n = 0; n < servers; ++n) {
    const double busy = (work[n] + own_work[n]) / speeds_[n];
    const auto devices = static_cast<double>(problem_.servers[n].devices.size());
    // M/M/1 of the mean job; several devices share the queue's length.
    const auto wait = [&](double share, double count) {
      return count > 0 ? (SlowDown(share) - 1) * (share / count) / devices : 0;
    };
    congestion.host_wait[n] = wait(busy, jobs[n] + own_jobs[n]);
    Egress& egress = congestion.egress[n];
    const double sent = egress.own + egress.answers;
    if (egress.own > 0) {
      egress.own_calls /= egress.own;
      egress.own_seconds /= egress.own;
    }
    const bool in_turn = PromptRate(n) > 0;
    congestion.home_wait[n] =
        in_turn ? wait(work[n] / speeds_[n], jobs[n]) : congestion.host_wait[n];
    egress.own_factor = SlowDown(in_turn ? egress.answers : sent);
    congestion.busiest_server = std::max(congestion.busiest_server, busy);
    if (model_.sharing == LinkSharing::kEgress) {
      congestion.busiest_link = std::max(congestion.busiest_link, sent);
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
