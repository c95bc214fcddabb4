#include "placement/call_routes.h"

#include <algorithm>
#include <cmath>

namespace troupe {
namespace {

// Of a message as small as a token's and as large as a prompt's: what a link is compared by.
constexpr double kMessageBytes = 64 * 1024;
constexpr std::size_t kManyHolders = 32;

double SecondsOver(const Link& link) {
  return link.latency_seconds + kMessageBytes / link.bytes_per_second;
}

// A number in (0, 1) of its own for each caller, expert and host.
double Lot(std::uint32_t caller, ExpertIndex e, std::uint32_t host) {
  std::uint64_t x = (std::uint64_t{caller} << 40) ^ (std::uint64_t{host} << 20) ^ e;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;  // splitmix64's finish
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  x ^= x >> 31;
  return (static_cast<double>(x >> 11) + 0.5) * 0x1p-53;
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
  for (std::uint32_t n = 0; n < problem_->server_count(); ++n) {
    hosts_[static_cast<std::size_t>(n) * experts_ + e] = holders.Holds(n, e) ? n : Choose(n, e);
  }
}

std::uint32_t CallRoutes::Choose(std::uint32_t caller, ExpertIndex e) const {
  if (among_.empty()) return kNobody;
  const LinkTable& links = problem_->links;
  if (links.pairs.empty() && among_.size() > kManyHolders) {
    // Of many equals any will do, and drawing a lot for each would take long.
    const double position = Lot(caller, e, 0) * static_cast<double>(among_.size());
    return among_[static_cast<std::size_t>(position)];
  }
  // The nearest; among equals the best lot (rendezvous hashing: when a holder comes or goes, only
  // callers to or from it change), with speed as weight.
  std::uint32_t best = among_.front();
  double nearest = INFINITY, shortest = INFINITY;
  for (const std::uint32_t host : among_) {
    const double seconds = SecondsOver(links.Between(caller, host));
    if (seconds > nearest) continue;
    const double lot = -std::log(Lot(caller, e, host)) / speeds_[host];
    if (seconds == nearest && lot >= shortest) continue;
    nearest = seconds;
    shortest = lot;
    best = host;
  }
  return best;
}

}  // namespace troupe
