#include "troupe/cluster_metrics.h"

#include <algorithm>
#include <utility>

#include "troupe/figures.h"

namespace troupe {
std::vector<ExtraMetric> MetricsOf(const ClusterState& state) {
  Figures figures;
  const auto here =
      std::ranges::count_if(state.peers, [](const ClusterState::Peer& peer) { return peer.here; });
  figures.Gauge("troupe_cluster_peers", "Peers that this node asks and answers", here);
  figures.Gauge("troupe_cluster_leads", "1 if this node plans for all", state.leads ? 1 : 0);
  if (state.membership) {
    figures.Gauge("troupe_cluster_listed", "1 if etcd lists this node and can be reached",
                  *state.membership == MemberState::kMember ? 1 : 0);
  }
  figures.Gauge("troupe_cluster_plan_epoch", "Epoch of the plan in force; 0: there is none",
                state.epoch);
  figures.Counter("troupe_cluster_plans_unwritten_total",
                  "Plans of this node, as the one that leads, that etcd did not take",
                  state.plans_unwritten);
  figures.Gauge("troupe_cluster_settled", "1 if this node holds what the plan says",
                state.settled ? 1 : 0);
  figures.Gauge("troupe_held_experts", "Experts that this node keeps in memory for everybody",
                state.held);
  constexpr auto kCalls =
      "Calls to peers: first ones, and those to another holder as the first was late";
  figures.Counter("troupe_peer_calls_total", kCalls, state.asked.calls, {{"kind", "first"}});
  figures.Counter("troupe_peer_calls_total", kCalls, state.asked.hedges, {{"kind", "hedge"}});
  constexpr auto kFailed = "Calls to peers that were not answered to the end";
  figures.Counter("troupe_peer_calls_failed_total", kFailed, state.asked.refused,
                  {{"why", "refused"}});
  figures.Counter("troupe_peer_calls_failed_total", kFailed, state.asked.lost, {{"why", "lost"}});
  figures.Counter("troupe_peer_calls_cancelled_total",
                  "Calls to peers that were taken back as others had answered or nobody waited",
                  state.asked.cancelled);
  constexpr auto kExperts = "Experts that peers were asked for, by who answered in the end";
  figures.Counter("troupe_peer_experts_total", kExperts, state.asked.answered, {{"by", "peer"}});
  figures.Counter("troupe_peer_experts_total", kExperts, state.asked.to_disk - state.asked.overtook,
                  {{"by", "disk"}});
  figures.Counter("troupe_peer_answers_overtook_total",
                  "Answers of peers that came before the load that was begun in their place",
                  state.asked.overtook);
  figures.Counter("troupe_peer_failed_loads_total",
                  "Experts that the disk failed at and a peer was asked for",
                  state.asked.failed_loads);
  figures.Counter(
      "troupe_peer_asked_again_total",
      "Times that all who held what the disk failed at were busy, and one was asked again",
      state.asked.asked_again);
  figures.Counter("troupe_peer_answers_unused_total", "Answers of peers that came too late",
                  state.asked.unused);
  figures.Counter("troupe_peer_answers_dropped_total",
                  "Messages of answers that were dropped as more came than are kept",
                  state.asked.dropped);
  figures.Counter("troupe_peer_answers_malformed_total",
                  "Messages of answers that cannot be read or do not fit what was asked",
                  state.asked.malformed);
  constexpr auto kLayers =
      "Layers whose misses peers could have computed: shared with them, left to the own disk as it "
      "was sooner, or while sharing rests";
  std::uint64_t shared = 0, local = 0, rested = 0, resting = 0;
  for (const DistributionReport& report : state.distribution) {
    shared += report.shared;
    local += report.local;
    rested += report.rested;
    resting += report.rests ? 1 : 0;
  }
  figures.Counter("troupe_cluster_layers_total", kLayers, shared, {{"how", "shared"}});
  figures.Counter("troupe_cluster_layers_total", kLayers, local, {{"how", "local"}});
  figures.Counter("troupe_cluster_layers_total", kLayers, rested, {{"how", "rested"}});
  figures.Gauge("troupe_cluster_sharing_rests",
                "Sizes of passes whose misses peers are not asked for, as that was slower",
                resting);
  figures.Gauge("troupe_plan_experts_resting",
                "Experts that the plan gives this node and whose slots its cache has, as sharing "
                "does not pay here and others hold them",
                state.resting);
  figures.Counter("troupe_plan_experts_rested_total", "Times that an expert began to rest so",
                  state.rested);
  constexpr auto kSeconds = "Time of calls that peers answered to the end, by where it went";
  const CallSeconds& seconds = state.asked_seconds;
  const std::pair<const char*, double> parts[] = {
      {"way", seconds.way}, {"waited", seconds.waited}, {"computed", seconds.computed}};
  for (const auto& [part, value] : parts) {
    figures.Counter("troupe_peer_call_seconds_total", kSeconds, value, {{"part", part}});
  }
  figures.Counter("troupe_peer_calls_answered_total", "Calls that peers answered to the end",
                  seconds.calls);
  constexpr auto kHost = "Calls of peers, by how they ended";
  const std::pair<const char*, std::uint64_t> ends[] = {
      {"answered", state.answered.calls},      {"busy", state.answered.busy},
      {"not_held", state.answered.not_held},   {"bad", state.answered.bad},
      {"cancelled", state.answered.cancelled}, {"expired", state.answered.expired},
      {"unsent", state.answered.unsent}};
  for (const auto& [end, count] : ends) {
    figures.Counter("troupe_host_calls_total", kHost, count, {{"end", end}});
  }
  figures.Counter("troupe_host_experts_total", "Experts computed for peers",
                  state.answered.experts);
  figures.Counter("troupe_host_rows_total", "Rows computed for peers", state.answered.rows);
  figures.Counter("troupe_host_seconds_total", "Time spent on calls of peers",
                  state.answered.seconds);
  figures.Counter("troupe_host_held_back_seconds_total",
                  "Of that, time in which others had the processor: own passes come before peers",
                  state.answered.held_back_seconds);
  constexpr auto kChecks = "Answers of peers that were computed again here (--verify)";
  const CheckCounters& checks = state.checks;
  figures.Counter("troupe_peer_checks_total", kChecks,
                  checks.checked - checks.wrong - checks.own_wrong - checks.undecided,
                  {{"found", "true"}});
  figures.Counter("troupe_peer_checks_total", kChecks, checks.own_wrong, {{"found", "own_wrong"}});
  figures.Counter("troupe_peer_checks_total", kChecks, checks.undecided, {{"found", "undecided"}});
  figures.Counter("troupe_peer_checks_total", kChecks, state.checks.wrong, {{"found", "wrong"}});
  figures.Gauge("troupe_peers_thrown_out",
                "Peers that have answered wrong rows, until `troupe cluster readmit`",
                state.thrown_out.size());
  figures.Counter(
      "troupe_peer_check_rows_left_out_total",
      "Rows of answers of peers that were to be computed again (--verify), and were not: "
      "8 rows of an answer are, all at 100%, and no more than there is room for",
      state.checks.rows_left_out);
  constexpr auto kFetched = "Experts that were to come from peers to be held here";
  const FetchCounters& fetched = state.fetched;
  figures.Counter("troupe_peer_fetches_total", kFetched, fetched.experts, {{"end", "came"}});
  figures.Counter("troupe_peer_fetches_total", kFetched, fetched.left, {{"end", "disk"}});
  constexpr auto kFetchedBytes = "Bytes of experts that came from peers, or went to them";
  figures.Counter("troupe_peer_fetched_bytes_total", kFetchedBytes, fetched.bytes,
                  {{"way", "received"}});
  figures.Counter("troupe_peer_fetched_bytes_total", kFetchedBytes, state.fetched_by_peers,
                  {{"way", "sent"}});
  figures.Counter(
      "troupe_plan_experts_read_total",
      "Experts that a plan wants here and no peer gave: they were read behind what passes "
      "load, or lay in the cache",
      state.experts_read);
  constexpr auto kBytes = "Bytes of frames between this node and its peers";
  figures.Counter("troupe_peer_bytes_total", kBytes, state.bytes_sent, {{"way", "sent"}});
  figures.Counter("troupe_peer_bytes_total", kBytes, state.bytes_received, {{"way", "received"}});
  constexpr auto kLinkBytes =
      "Bytes of frames over the link by which each peer is asked, since that link came";
  constexpr auto kCall = "What a call takes that brings nothing back, as measured";
  for (const ClusterState::Peer& peer : state.peers) {
    if (!peer.here) continue;
    figures.Counter("troupe_peer_link_bytes_total", kLinkBytes, peer.bytes_sent,
                    {{"peer", peer.name}, {"way", "sent"}});
    figures.Counter("troupe_peer_link_bytes_total", kLinkBytes, peer.bytes_received,
                    {{"peer", peer.name}, {"way", "received"}});
  }
  for (const ClusterState::Peer& peer : state.peers) {
    if (!peer.here || peer.call_seconds <= 0) continue;
    figures.Gauge("troupe_peer_link_round_trip_seconds", kCall, peer.call_seconds,
                  {{"peer", peer.name}});
  }
  constexpr auto kMigration =
      "Experts that nodes that are here lacked when the plan in force came, and those that have "
      "come since";
  figures.Gauge("troupe_migration_experts", kMigration, state.migration.experts,
                {{"state", "planned"}});
  figures.Gauge("troupe_migration_experts", kMigration, state.migration.moved,
                {{"state", "moved"}});
  figures.Counter("troupe_peer_dials_failed_total", "Attempts to dial a peer that brought no link",
                  state.dials_failed);
  figures.Gauge("troupe_peers_unreachable", "Addresses of peers that were dialled in vain last",
                state.unreachable.size());
  if (state.certificate_expires != 0) {
    figures.Gauge("troupe_peer_certificate_expires_timestamp_seconds",
                  "When the certificate by which peers know this node expires",
                  state.certificate_expires);
  }
  figures.Gauge("troupe_peer_links", "Links to peers; one for each, once both have dialled",
                state.links);
  figures.Counter("troupe_peer_links_spared_total",
                  "Links that this node hung up as the peer had dialled too", state.links_spared);
  figures.Counter("troupe_peer_links_lost_total", "Links to peers that were lost",
                  state.links_lost);
  return std::move(figures).Take();
}

}  // namespace troupe
