// What a node tells of itself: its state and holdings to its own users, its measures to who leads.
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "cluster/cluster_node.h"

namespace troupe {

NodeMeasures ClusterNode::Measured() const {
  NodeMeasures measured{.disk_bytes_per_second = disk_bytes_per_second_, .links = {}};
  const RunningLine computing = host_->computing();
  if (computing.measured()) {
    measured.seconds_an_expert = computing.at_zero();
    measured.seconds_a_row = computing.slope();
  }
  if (const CallSeconds seconds = calls_.seconds(); seconds.rows > 0) {
    measured.seconds_a_remote_row =
        (seconds.way + seconds.waited) / static_cast<double>(seconds.rows);
  }
  for (const MeasuredLink& link : calls_.Links()) {
    measured.links.push_back(
        {.peer = link.peer,
         .round_trip_seconds = link.round_trip_seconds,
         .bytes_per_second = link.byte_seconds > 0 ? 1 / link.byte_seconds : 0});
  }
  return measured;
}

std::vector<std::uint8_t> ClusterNode::HeldNow() const {
  const HeldExperts& held = engine_.held();
  const ExpertGrid& grid = held.grid();
  std::vector<std::uint8_t> now(grid.Count());
  for (std::uint32_t layer = 0; layer < grid.layers; ++layer) {
    for (std::uint32_t expert = 0; expert < grid.experts; ++expert) {
      now[grid.Index({layer, expert})] = held.Holds({layer, expert}) ? 1 : 0;
    }
  }
  return now;
}

ClusterState ClusterNode::State() const {
  ClusterState state{.cluster = options_.cluster,
                     .name = options_.name,
                     .address = options_.address,
                     .held = engine_.held().count(),
                     .peers = {},
                     .answers = engine_.offload_options().peer_answers,
                     .asked = calls_.counters(),
                     .asked_seconds = calls_.seconds(),
                     .answered = host_->counters(),
                     .checks = {}};
  for (const PeerEntry& peer : directory_.Entries()) {
    const bool here = peer.link != 0;
    state.peers.push_back({.name = peer.name,
                           .here = here,
                           .round_trip_seconds = peer.round_trip_seconds,
                           .held = here ? peer.held.size() : 0});
  }
  const LinkCounters links = links_->counters();
  state.bytes_sent = links.bytes_sent;
  state.bytes_received = links.bytes_received;
  state.links_lost = links.lost;
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
  for (const auto& [address, why] : unreachable_.reasons()) {
    state.unreachable.push_back({.address = address, .why = why});
  }
  if (core_->leads()) state.look = core_->look();
  state.plans_unwritten = core_->plans_unwritten();
  if (state.look) {
    state.looked_seconds_ago = static_cast<double>(clock_.Now() - state.look->at) * 1e-9;
  }
  state.distribution = distribution_;
  state.judged = judged_;
  state.leads = core_->leads();
  state.leader = core_->LeaderName();
  state.checks = checks_;
  state.checks.rows_left_out = calls_.rows_not_checked();
  state.fetched = fetcher_.counters();
  state.experts_read = experts_read_;
  state.fetched_by_peers = giver_.bytes();
  state.draining = core_->draining();
  if (membership_ != nullptr) state.membership = membership_->state();
  state.epoch = core_->plan() ? core_->plan()->epoch : 0;
  state.settled = core_->settled();
  if (core_->plan()) {
    for (const ClusterPlan::Node& node : core_->plan()->nodes) {
      state.planned.emplace_back(node.name, node.count());
    }
  }
  state.holdings_version = HoldingsVersion();
  return state;
}

// Each part only goes up, and so does their sum.
std::uint64_t ClusterNode::HoldingsVersion() const {
  return directory_.version() + core_->changes();
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
  if (core_->plan()) {
    holdings.epoch = core_->plan()->epoch;
    for (const ClusterPlan::Node& node : core_->plan()->nodes) {
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
