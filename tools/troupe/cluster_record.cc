#include "troupe/cluster_record.h"

#include <fmt/core.h>

#include <limits>
#include <map>
#include <string_view>

#include "base/bytes.h"
#include "base/json_value.h"
#include "base/printable.h"

namespace troupe {
namespace {

constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();

Json NullIfEmpty(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json PlanOf(const ClusterState& state) {
  if (state.epoch == 0) return nullptr;
  Json nodes = Json::Array();
  for (const auto& [name, experts] : state.planned) {
    nodes.push_back({{"name", name}, {"experts", experts}});
  }
  Json plan = {{"epoch", state.epoch}, {"settled", Json(state.settled)}};
  plan["nodes"] = std::move(nodes);
  return plan;
}

Json LookOf(const ClusterState& state) {
  if (!state.look) return nullptr;
  const PlanLook& look = *state.look;
  Json record = {{"seconds_ago", state.looked_seconds_ago},
                 {"adopted", Json(look.adopted)},
                 {"why", look.why},
                 {"unwritten", look.unwritten}};
  if (look.weighed) {
    record["now_s"] = look.seconds_now;
    record["after_s"] = look.seconds_after;
    record["migration_s"] = look.migration_seconds;
  }
  return record;
}

Json UnreachableOf(const ClusterState& state) {
  Json list = Json::Array();
  for (const ClusterState::Unreachable& one : state.unreachable) {
    list.push_back({{"address", one.address}, {"why", one.why}});
  }
  return list;
}

Json DistributionOf(const ClusterState& state) {
  Json sizes = Json::Array();
  for (const DistributionReport& report : state.distribution) {
    sizes.push_back({{"least_rows", report.least_rows},
                     {"shared", report.shared},
                     {"local", report.local},
                     {"rested", report.rested},
                     {"gain", report.gain},
                     {"rests", Json(report.rests)},
                     {"says", ToString(report)}});
  }
  return sizes;
}

Json DecisionsOf(const ClusterState& state) {
  Json layers = Json::Array();
  for (const JudgedLayer& layer : state.judged) {
    layers.push_back({{"layer", layer.layer},
                      {"rows", layer.rows},
                      {"misses", layer.misses},
                      {"elsewhere", layer.elsewhere},
                      {"all_local_s", layer.all_local_seconds},
                      {"planned_s", layer.planned_seconds},
                      {"took_s", layer.took_seconds}});
  }
  return layers;
}

// What sharing came to, and the last layers of which it was decided.
std::string SharingOf(const JsonValue& record) {
  std::string lines;
  const JsonValue sizes = record.At("distribution");
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const JsonValue size = sizes.At(i);
    if (size.At("shared").Number() + size.At("local").Number() + size.At("rested").Number() == 0) {
      continue;
    }
    lines += Printable(size.At("says").String()) + "\n";
  }
  const JsonValue layers = record.At("decisions");
  if (layers.size() > 0) {
    lines += fmt::format("\n{:>6} {:>6} {:>7} {:>9} {:>12} {:>12} {:>9}\n", "layer", "rows",
                         "misses", "to peers", "disk alone", "as shared", "took");
  }
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const JsonValue layer = layers.At(i);
    lines += fmt::format("{:>6} {:>6} {:>7} {:>9} {:>9.2f} ms {:>9.2f} ms {:>6.2f} ms\n",
                         layer.At("layer").Count(0, kAny), layer.At("rows").Count(0, kAny),
                         layer.At("misses").Count(0, kAny), layer.At("elsewhere").Count(0, kAny),
                         1e3 * layer.At("all_local_s").Number(),
                         1e3 * layer.At("planned_s").Number(), 1e3 * layer.At("took_s").Number());
  }
  return lines;
}

// Reasons that still hold, under the events.
std::string StandingReasons(const JsonValue& record) {
  std::string lines;
  if (record.Has("not_listed") && !record.At("not_listed").raw().IsNull()) {
    lines += fmt::format("etcd does not list this node: {}\n",
                         Printable(record.At("not_listed").String()));
  }
  const JsonValue unreachable = record.At("unreachable");
  for (std::size_t i = 0; i < unreachable.size(); ++i) {
    lines += fmt::format("no link to {}\n", Printable(unreachable.At(i).At("why").String()));
  }
  if (const JsonValue look = record.At("look"); !look.raw().IsNull()) {
    lines += fmt::format("{:.1f} s ago it looked at plans: {}\n", look.At("seconds_ago").Number(),
                         Printable(look.At("why").String()));
    if (const std::string why = look.At("unwritten").String(); !why.empty()) {
      lines += fmt::format("{}\n", Printable(why));
    }
  }
  return lines;
}

Json PeersOf(const ClusterState& state) {
  Json peers = Json::Array();
  for (const ClusterState::Peer& peer : state.peers) {
    peers.push_back({{"name", peer.name},
                     {"here", Json(peer.here)},
                     {"round_trip_s", peer.round_trip_seconds},
                     {"held", peer.held},
                     {"sent", peer.bytes_sent},
                     {"received", peer.bytes_received},
                     {"call_s", peer.call_seconds},
                     {"bytes_per_s", peer.bytes_per_second}});
  }
  return peers;
}

Json MigrationOf(const MigrationLook& look) {
  if (look.experts == 0) return nullptr;
  Json nodes = Json::Array();
  for (const MigrationLook::Node& node : look.nodes) {
    nodes.push_back({{"name", node.name}, {"experts", node.experts}, {"moved", node.moved}});
  }
  Json record = {{"epoch", look.epoch},
                 {"experts", look.experts},
                 {"moved", look.moved},
                 {"bytes", look.bytes},
                 {"bytes_moved", look.bytes_moved},
                 {"seconds", look.seconds},
                 {"quiet_s", look.quiet_seconds},
                 {"left_s", look.seconds_left ? Json(*look.seconds_left) : Json(nullptr)}};
  record["nodes"] = std::move(nodes);
  return record;
}

// A line while experts are on their way; none once they have come.
std::string MigrationLine(const JsonValue& record) {
  if (!record.Has("migration")) return "";  // a node of an older build
  const JsonValue migration = record.At("migration");
  if (migration.raw().IsNull()) return "";
  const std::uint64_t experts = migration.At("experts").Count(0, kAny);
  const std::uint64_t moved = migration.At("moved").Count(0, kAny);
  if (moved >= experts) return "";
  const std::string left =
      migration.At("left_s").raw().IsNull()
          ? "it is not known how long it takes"
          : fmt::format("about {:.0f} s left", migration.At("left_s").Number());
  return fmt::format("migration: {} of {} experts have come, {} of {}; {}\n", moved, experts,
                     ToString(Bytes(migration.At("bytes_moved").Count(0, kAny))),
                     ToString(Bytes(migration.At("bytes").Count(0, kAny))), left);
}

Json ThrownOutOf(const ClusterState& state) {
  Json all = Json::Array();
  for (const ClusterState::ThrownOut& peer : state.thrown_out) {
    all.push_back({{"name", peer.name},
                   {"address", peer.address},
                   {"layer", peer.id.layer},
                   {"expert", peer.id.expert}});
  }
  return all;
}

std::string SayThrownOut(const JsonValue& record) {
  std::string lines;
  const JsonValue all = record.At("thrown_out");
  for (std::size_t i = 0; i < all.size(); ++i) {
    const JsonValue peer = all.At(i);
    const ExpertId id{static_cast<std::uint32_t>(peer.At("layer").Count(0, kAny)),
                      static_cast<std::uint32_t>(peer.At("expert").Count(0, kAny))};
    lines += fmt::format(
        "{} at {} is thrown out: wrong rows of {}; `troupe cluster readmit` lets "
        "it in again\n",
        Printable(peer.At("name").String()), Printable(peer.At("address").String()), ToString(id));
  }
  return lines;
}

std::string TextOrNobody(const JsonValue& json) {
  return json.raw().IsNull() ? "nobody" : Printable(json.String());
}

struct NodeLine {
  std::string planned = "-", holds = "-", round_trip = "-";
};

std::string HeadOf(const JsonValue& record) {
  std::string head =
      fmt::format("cluster {}, node {} at {}\n", Printable(record.At("cluster").String()),
                  Printable(record.At("node").String()), Printable(record.At("address").String()));
  head += fmt::format("{} leads", TextOrNobody(record.At("leader")));
  if (!record.At("etcd").raw().IsNull()) {
    head += fmt::format("; by etcd: {}", Printable(record.At("etcd").String()));
  }
  if (const std::string form = record.At("peer_answers").String(); form != "floats") {
    head += fmt::format("; peers answer in {}: not exact", Printable(form));
  }
  const JsonValue plan = record.At("plan");
  if (plan.raw().IsNull()) return head + "; no plan yet\n";
  head += fmt::format("; plan {}, {} here\n", plan.At("epoch").Count(0, kAny),
                      plan.At("settled").Flag() ? "carried out" : "being carried out");
  if (record.At("draining").Flag()) {
    head += fmt::format("is to go: {} experts are left\n", record.At("held").Count(0, kAny));
  }
  return head;
}

std::string NodesOf(const JsonValue& record) {
  std::map<std::string, NodeLine> lines;
  if (const JsonValue plan = record.At("plan"); !plan.raw().IsNull()) {
    const JsonValue nodes = plan.At("nodes");
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      lines[nodes.At(i).At("name").String()].planned =
          std::to_string(nodes.At(i).At("experts").Count(0, kAny));
    }
  }
  lines[record.At("node").String()].holds = std::to_string(record.At("held").Count(0, kAny));
  const JsonValue peers = record.At("peers");
  for (std::size_t i = 0; i < peers.size(); ++i) {
    const JsonValue peer = peers.At(i);
    NodeLine& line = lines[peer.At("name").String()];
    const bool is_here = peer.At("here").Flag();
    line.holds = is_here ? std::to_string(peer.At("held").Count(0, kAny)) : "away";
    if (is_here) {
      line.round_trip = fmt::format("{:.2f} ms", 1e3 * peer.At("round_trip_s").Number());
    }
  }
  std::string table =
      fmt::format("\n{:<24} {:>8} {:>8} {:>12}\n", "node", "planned", "holds", "round trip");
  for (const auto& [name, line] : lines) {
    table += fmt::format("{:<24} {:>8} {:>8} {:>12}\n", Printable(name), line.planned, line.holds,
                         line.round_trip);
  }
  return table;
}

// Of twenty counters most are zero: those are left out.
std::string CountsOf(const JsonValue& record, const char* key, const char* title) {
  std::string line = fmt::format("{}:", title);
  const JsonValue counts = record.At(key);
  if (!counts.IsObject()) counts.Fail("an object");
  for (const Json::Member& count : counts.raw().members()) {
    const double number = counts.At(count.key.c_str()).Number();
    if (number != 0) line += fmt::format(" {} {:g}", Printable(count.key), number);
  }
  return line.ends_with(':') ? line + " nothing\n" : line + "\n";
}

}  // namespace

Json RecordOf(const ClusterState& state) {
  Json record = {{"cluster", state.cluster},
                 {"node", state.name},
                 {"address", state.address},
                 {"kernels", state.kernels},
                 {"leads", Json(state.leads)},
                 {"leader", NullIfEmpty(state.leader)},
                 {"etcd", state.membership ? Json(ToString(*state.membership)) : Json(nullptr)},
                 {"not_listed", NullIfEmpty(state.not_listed)},
                 {"plan", PlanOf(state)},
                 {"held", state.held},
                 {"draining", Json(state.draining)},
                 {"peers", PeersOf(state)},
                 {"thrown_out", ThrownOutOf(state)},
                 {"peer_answers", std::string(ToString(state.answers))}};
  const CallCounters& asked = state.asked;
  record["asked"] = {{"calls", asked.calls},
                     {"hedges", asked.hedges},
                     {"experts", asked.experts},
                     {"by_peers", asked.answered},
                     {"by_disk", asked.to_disk - asked.overtook},
                     {"unused", asked.unused},
                     {"overtook", asked.overtook},
                     {"failed_loads", asked.failed_loads},
                     {"asked_again", asked.asked_again},
                     {"refused", asked.refused},
                     {"lost", asked.lost},
                     {"cancelled", asked.cancelled},
                     {"dropped", asked.dropped},
                     {"malformed", asked.malformed}};
  const HostCounters& answered = state.answered;
  record["answered"] = {{"calls", answered.calls},
                        {"experts", answered.experts},
                        {"rows", answered.rows},
                        {"busy", answered.busy},
                        {"not_held", answered.not_held},
                        {"bad", answered.bad},
                        {"cancelled", answered.cancelled},
                        {"expired", answered.expired},
                        {"unsent", answered.unsent},
                        {"seconds", answered.seconds},
                        {"held_back_seconds", answered.held_back_seconds}};
  const CallSeconds& seconds = state.asked_seconds;
  record["asked_seconds"] = {{"calls", seconds.calls},
                             {"rows", seconds.rows},
                             {"way", seconds.way},
                             {"waited", seconds.waited},
                             {"computed", seconds.computed}};
  record["checks"] = {{"checked", state.checks.checked},
                      {"wrong", state.checks.wrong},
                      {"own_wrong", state.checks.own_wrong},
                      {"undecided", state.checks.undecided},
                      {"rows_left_out", state.checks.rows_left_out}};
  const FetchCounters& fetched = state.fetched;
  record["fetched"] = {{"experts", fetched.experts}, {"bytes", fetched.bytes},
                       {"resumed", fetched.resumed}, {"wrong", fetched.wrong},
                       {"left", fetched.left},       {"given_bytes", state.fetched_by_peers}};
  record["migration"] = MigrationOf(state.migration);
  record["look"] = LookOf(state);
  record["distribution"] = DistributionOf(state);
  record["decisions"] = DecisionsOf(state);
  record["resting"] = {{"experts", state.resting}, {"ever", state.rested}};
  record["unreachable"] = UnreachableOf(state);
  record["experts_read"] = state.experts_read;
  record["bytes"] = {{"sent", state.bytes_sent}, {"received", state.bytes_received}};
  Json events = Json::Array();
  for (const ClusterState::Event& event : state.events) {
    events.push_back({{"seconds_ago", event.seconds_ago}, {"text", event.text}});
  }
  record["events"] = std::move(events);
  record["holdings_version"] = state.holdings_version;
  return record;
}

Result<std::string> ClusterTable(std::string_view name, std::string_view record) {
  return ReadJson<std::string>(std::string(name), record, [](const JsonValue& json) {
    return HeadOf(json) + MigrationLine(json) + NodesOf(json) + SayThrownOut(json) + "\n" +
           CountsOf(json, "asked", "asked of peers") +
           CountsOf(json, "answered", "answered to peers");
  });
}

Result<std::string> ClusterEvents(std::string_view name, std::string_view record) {
  return ReadJson<std::string>(std::string(name), record, [](const JsonValue& json) {
    std::string lines;
    const JsonValue events = json.At("events");
    for (std::size_t i = 0; i < events.size(); ++i) {
      lines += fmt::format("{:>10.1f} s ago  {}\n", events.At(i).At("seconds_ago").Number(),
                           Printable(events.At(i).At("text").String()));
    }
    const std::string standing = StandingReasons(json) + SharingOf(json);
    return standing.empty() ? lines : lines + "\n" + standing;
  });
}

}  // namespace troupe
