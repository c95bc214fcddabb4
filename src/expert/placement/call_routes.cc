#include "expert/placement/call_routes.h"

#include <algorithm>
#include <cmath>

namespace troupe {
namespace {

// Of a message as small as a token's and as large as a prompt's: what a link is compared by.
constexpr double kMessageBytes = 64 * 1024;

double SecondsOver(const Link& link) {
  return link.latency_seconds + kMessageBytes / link.bytes_per_second;
}

// Evenly spread over [0, 1), another for each caller and expert.
double Spread(std::uint32_t caller, ExpertIndex e) {
  const double x = caller * 0.6180339887498949 + e * 0.7548776662466927;
  return x - std::floor(x);
}

}  // namespace

CallRoutes::CallRoutes(const PlacementProblem& problem, const HolderTable& holders)
    : problem_(&problem),
      experts_(problem.experts.size()),
      hosts_(static_cast<std::size_t>(problem.server_count()) * experts_) {
  for (const PlacementServer& server : problem.servers) speeds_.push_back(server.speed());
  for (ExpertIndex e = 0; e < experts_; ++e) Renew(e, holders);
}

void CallRoutes::Renew(ExpertIndex e, const HolderTable& holders) {
  among_.clear();
  for (std::uint32_t n = 0; n < problem_->server_count(); ++n) {
    if (holders.Holds(n, e)) among_.push_back(n);
  }
  TROUPE_CHECK(!among_.empty());
  for (std::uint32_t n = 0; n < problem_->server_count(); ++n) {
    hosts_[static_cast<std::size_t>(n) * experts_ + e] = holders.Holds(n, e) ? n : Choose(n, e);
  }
}

std::uint32_t CallRoutes::Choose(std::uint32_t caller, ExpertIndex e) const {
  const LinkTable& links = problem_->links;
  if (links.pairs.empty() && among_.size() > 64) {  // many equals: speed hardly matters then
    return among_[static_cast<std::size_t>(Spread(caller, e) * static_cast<double>(among_.size()))];
  }
  double nearest = INFINITY, speed = 0;
  for (const std::uint32_t host : among_) {
    const double seconds = SecondsOver(links.Between(caller, host));
    if (seconds > nearest) continue;
    if (seconds < nearest) speed = 0;
    nearest = seconds;
    speed += speeds_[host];
  }
  double position = Spread(caller, e) * speed;
  std::uint32_t last = among_.front();
  for (const std::uint32_t host : among_) {
    if (SecondsOver(links.Between(caller, host)) > nearest) continue;
    last = host;
    if (position < speeds_[host]) break;
    position -= speeds_[host];
  }
  return last;
}

}  // namespace troupe
