// What a node tells its own users of itself: its state and holdings.
#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "cluster/cluster_node.h"
#include "kernels/target.h"

namespace troupe {

ClusterState ClusterNode::State() const {
  ClusterState state{.cluster = options_.cluster,
                     .name = options_.name,
                     .address = options_.address,
                     .kernels = std::string(Name(ActiveTarget())),
                     .held = engine_.held().count(),
                     .peers = {},
                     .answers = engine_.offload_options().peer_answers,
                     .asked = calls_.counters(),
                     .asked_seconds = calls_.seconds(),
                     .answered = host_->counters(),
                     .checks = {}};
  const std::vector<MeasuredLink> measured = calls_.Links();
  for (const PeerEntry& peer : directory_.Entries()) {
    const bool here = peer.link != 0;
    ClusterState::Peer one{.name = peer.name,
                           .here = here,
                           .round_trip_seconds = peer.round_trip_seconds,
                           .held = here ? peer.held.size() : 0};
    const LinkTraffic traffic = here ? links_->TrafficOf(peer.link) : LinkTraffic();
    one.bytes_sent = traffic.sent;
    one.bytes_received = traffic.received;
    const auto link = std::ranges::find(measured, peer.name, &MeasuredLink::peer);
    if (here && link != measured.end()) {
      one.call_seconds = link->round_trip_seconds;
      one.bytes_per_second = link->byte_seconds > 0 ? 1 / link->byte_seconds : 0;
    }
    state.peers.push_back(std::move(one));
  }
  state.certificate_expires = certificate_expires_;
  const LinkCounters links = links_->counters();
  state.bytes_sent = links.bytes_sent;
  state.bytes_received = links.bytes_received;
  state.dials_failed = links.unreachable;
  {
    const MutexLock lock(said_mu_);
    const Nanos now = clock_.Now();
    for (const Said& said : said_) {
      state.events.push_back(
          {.seconds_ago = static_cast<double>(now - said.at) * 1e-9, .text = said.text});
    }
  }
  const MutexLock lock(mu_);
  const NodeCore& core = parts_->core();
  for (const auto& [address, why] : parts_->unreachable().reasons()) {
    state.unreachable.push_back({.address = address, .why = why});
  }
  for (const ThrownOut::Peer& peer : core.thrown_out().peers()) {
    state.thrown_out.push_back({.name = peer.node, .address = peer.address, .id = peer.id});
  }
  if (core.leads()) state.look = core.look();
  state.links = core.links();
  state.links_spared = core.links_spared();
  // Those that peers hung up as one is enough are not lost.
  state.links_lost = links.lost - std::min(links.lost, core.links_spared_by_peers());
  state.plans_unwritten = core.plans_unwritten();
  if (state.look) {
    state.looked_seconds_ago = static_cast<double>(clock_.Now() - state.look->at) * 1e-9;
  }
  state.distribution = distribution_;
  state.judged = judged_;
  state.resting = core.follower().resting();
  state.rested = core.follower().rested();
  state.leads = core.leads();
  state.leader = core.LeaderName();
  state.checks = parts_->checks();
  state.checks.rows_left_out = calls_.rows_not_checked();
  state.fetched = parts_->fetched();
  state.experts_read = experts_read_;
  state.fetched_by_peers = parts_->given_bytes();
  state.migration = parts_->migration().At(clock_.Now());
  state.draining = core.draining();
  if (const Membership* member = parts_->membership()) {
    state.membership = member->state();
    if (member->kept_waiting()) state.not_listed = member->problem();
  }
  state.epoch = core.plan() ? core.plan()->epoch : 0;
  state.settled = core.settled();
  if (core.plan()) {
    for (const ClusterPlan::Node& node : core.plan()->nodes) {
      state.planned.emplace_back(node.name, node.count());
    }
  }
  state.holdings_version = HoldingsVersion();
  return state;
}

// Each part only goes up, and so does their sum.
std::uint64_t ClusterNode::HoldingsVersion() const {
  return directory_.version() + parts_->core().changes();
}

ClusterHoldings ClusterNode::Holdings() const {
  const ModelConfig& config = engine_.config();
  const ExpertGrid grid{.layers = config.layers, .experts = config.moe.routing.experts};
  const auto lists = [&](const auto& has) {
    ClusterHoldings::Experts experts(grid.layers);
    for (std::uint32_t layer = 0; layer < grid.layers; ++layer) {
      for (std::uint32_t expert = 0; expert < grid.experts; ++expert) {
        if (has(ExpertId{layer, expert})) experts[layer].push_back(expert);
      }
    }
    return experts;
  };
  ClusterHoldings holdings{.grid = grid, .first_layer = config.moe.leading_dense, .nodes = {}};
  {
    const MutexLock lock(mu_);
    holdings.version = HoldingsVersion();  // first: who comes back for a newer one misses nothing
  }
  std::map<std::string, ClusterHoldings::Node> nodes;
  nodes[options_.name] = {.here = true,
                          .held = lists([&](ExpertId id) { return engine_.held().Holds(id); })};
  for (const PeerEntry& peer : directory_.Entries()) {
    nodes[peer.name] = {.here = peer.link != 0, .held = lists([&](ExpertId id) {
                                                  return peer.link != 0 && peer.held.Has(id);
                                                })};
  }
  const MutexLock lock(mu_);
  const NodeCore& core = parts_->core();
  if (core.plan()) {
    holdings.epoch = core.plan()->epoch;
    for (const ClusterPlan::Node& node : core.plan()->nodes) {
      nodes[node.name].planned = node.held;
    }
  }
  for (auto& [name, node] : nodes) {
    node.name = name;
    if (node.planned.empty()) node.planned.resize(grid.layers);
    if (node.held.empty()) node.held.resize(grid.layers);
    holdings.nodes.push_back(std::move(node));
  }
  return holdings;
}

}  // namespace troupe
