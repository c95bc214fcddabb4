// What nodes of a simulated cluster do for their users and for each other: layers ask (CallFlow),
// hosts answer in turn (FairQueue), experts come from peers (ExpertFetch). Rows and experts are
// numbers that only the right expert gives. Disks take time, and fail.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/fair_queue.h"
#include "cluster/calls/call_flow.h"
#include "cluster/calls/expert_fetch.h"
#include "cluster/simulated_nodes_for_test.h"

namespace troupe {

class SimulatedServing {
 public:
  static constexpr Nanos kMs = SimulatedNodes::kMs;
  static constexpr ExpertGrid kGrid = SimulatedNodes::kGrid;

  explicit SimulatedServing(SimulatedNodes& nodes) : nodes_(nodes) {
    for (std::size_t i = 0; i < nodes.size(); ++i) servers_.push_back(std::make_unique<Server>());
    nodes.on_left = [this](std::size_t i, const std::string& name) { OnLeft(i, name); };
    nodes.fetch = [this](std::size_t i, const HoldStep& step, std::function<void()> done) {
      return Fetch(i, step, std::move(done));
    };
  }

  // A layer of node i's users; nothing while the one before it waits.
  void AskLayer(std::size_t i) {
    Server& server = *servers_[i];
    if (!nodes_.core(i) || !server.wanted.empty()) return;
    server.layer = 1 + static_cast<std::uint32_t>(nodes_.rng().Below(2));
    ++server.layers;
    std::vector<std::vector<PeerIndex>> holders;
    std::vector<AskedExpert> asked;
    for (std::uint32_t expert = 0; expert < kGrid.experts; ++expert) {
      if (nodes_.held(i)[kGrid.Index({server.layer, expert})] != 0) continue;
      if (nodes_.rng().Below(2) == 0) continue;
      server.wanted.insert(expert);
      holders.push_back(HoldersOf(i, {server.layer, expert}));
      if (holders.back().empty()) Load(i, expert);
    }
    std::size_t at = 0;
    for (const std::uint32_t expert : server.wanted) {
      const std::vector<PeerIndex>& who = holders[at++];
      if (!who.empty()) asked.push_back({.expert = expert, .rows = 1, .holders = who});
    }
    server.flow.Ask(asked, Places());
    Drive(i);
  }
  // With all that it was doing.
  void OnKilled(std::size_t i) {
    Add(servers_[i]->flow.counters(), servers_[i]->fetch.counters());
    const std::uint64_t layers = servers_[i]->layers;
    servers_[i] = std::make_unique<Server>();
    servers_[i]->layers = layers;
  }

  bool waits(std::size_t i) const { return !servers_[i]->wanted.empty(); }
  std::uint64_t answered() const { return answered_; }
  // Of all nodes, dead ones too.
  std::pair<CallCounters, FetchCounters> Counters() const {
    SimulatedServing all(*this, nullptr);
    for (const auto& server : servers_) all.Add(server->flow.counters(), server->fetch.counters());
    return {all.calls_, all.fetches_};
  }

 private:
  struct HostCall {
    std::size_t asker = 0;
    PeerCallId call = 0;
    std::uint32_t layer = 0;
    std::vector<std::uint32_t> experts;
    Nanos worth_until = 0;
    std::size_t size() const { return 100 * experts.size(); }
  };
  struct Server {
    CallFlow flow{{.late_after = 2, .least = 40 * kMs, .without_disk = 2'000 * kMs}};
    std::uint32_t layer = 0;
    std::uint64_t layers = 0;
    std::set<std::uint32_t> wanted;   // and not had yet
    std::set<std::uint32_t> loading;  // of them
    std::set<std::uint32_t> failed;   // loads, of the layer
    FairQueue<HostCall> queue{3, 2'000};
    bool computing = false;
    ExpertFetch fetch{SumOf, 400 * kMs};
    std::function<void()> fetched;
    std::uint64_t fetch_number = 0;
  };

  SimulatedServing(const SimulatedServing& other, std::nullptr_t)
      : nodes_(other.nodes_), calls_(other.calls_), fetches_(other.fetches_) {}

  static std::uint64_t RowOf(ExpertId id) { return 1'000 * id.layer + id.expert + 7; }
  static std::vector<std::byte> BytesOf(ExpertId id) {
    return std::vector<std::byte>(10, static_cast<std::byte>(RowOf(id)));
  }
  static std::uint64_t SumOf(std::span<const std::byte> bytes) {
    std::uint64_t sum = bytes.size();
    for (const std::byte byte : bytes) sum = sum * 31 + std::to_integer<std::uint64_t>(byte);
    return sum;
  }
  std::vector<Place> Places() const {
    return {nodes_.size(),
            Place{.name = "peer", .latency_seconds = 60e-3, .expert_seconds = 10e-3}};
  }
  bool Holds(std::size_t i, ExpertId id) const { return nodes_.held(i)[kGrid.Index(id)] != 0; }
  std::vector<PeerIndex> HoldersOf(std::size_t i, ExpertId id) const {
    std::vector<PeerIndex> holders;
    for (const auto& [name, held] : nodes_.known(i)) {
      if (held.Has(id)) holders.push_back(static_cast<PeerIndex>(*nodes_.IndexOf(name)));
    }
    return holders;
  }

  void Add(const CallCounters& calls, const FetchCounters& fetches) {
    calls_.hedges += calls.hedges;
    calls_.answered += calls.answered;
    calls_.overtook += calls.overtook;
    calls_.lost += calls.lost;
    calls_.refused += calls.refused;
    calls_.failed_loads += calls.failed_loads;
    fetches_.experts += fetches.experts;
    fetches_.resumed += fetches.resumed;
    fetches_.left += fetches.left;
  }

  void Drive(std::size_t i) {
    Server& server = *servers_[i];
    for (const CallToSend& call : server.flow.TakeCalls(nodes_.now())) {
      HostCall asked{.asker = i,
                     .call = call.call,
                     .layer = server.layer,
                     .experts = call.experts,
                     .worth_until = nodes_.now() + call.given_up_after};
      const std::size_t host = call.peer;
      if (!nodes_.Post(i, host, [this, host, asked] { OnAsk(host, asked); })) {
        server.flow.OnRefused(call.call);
      }
    }
    for (const std::uint32_t expert : server.flow.TakeToLoad()) Load(i, expert);
    (void)server.flow.TakeCancels();
    if (const auto next = server.flow.NextTime()) {
      nodes_.Later(i, std::max<Nanos>(0, *next - nodes_.now()), [this, i] {
        if (const auto due = servers_[i]->flow.NextTime(); due && *due <= nodes_.now()) {
          servers_[i]->flow.OnTime(nodes_.now());
          Drive(i);
        }
      });
    }
  }

  // What a layer is given, from wherever.
  void Give(std::size_t i, std::uint32_t expert, std::uint64_t row) {
    Server& server = *servers_[i];
    ASSERT_EQ(row, RowOf({server.layer, expert})) << "wrong bytes";
    ASSERT_EQ(server.wanted.erase(expert), 1u) << "given twice, or not wanted";
    ++answered_;
    if (server.wanted.empty()) {
      EXPECT_EQ(server.flow.waiting(), 0u);
      server.flow.Forget();
      server.loading.clear();
      server.failed.clear();
    }
  }

  void Load(std::size_t i, std::uint32_t expert) {
    servers_[i]->loading.insert(expert);
    const std::uint64_t layers = servers_[i]->layers;
    const Nanos takes = static_cast<Nanos>(20 + nodes_.rng().Below(200)) * kMs;
    nodes_.Later(i, takes, [this, i, expert, layers] {
      Server& server = *servers_[i];
      if (server.layers != layers || !server.loading.contains(expert)) return;  // a peer was sooner
      server.loading.erase(expert);
      const std::vector<PeerIndex> holders = HoldersOf(i, {server.layer, expert});
      const bool fails = nodes_.rng().Below(6) == 0 && !holders.empty();
      if (fails && server.failed.insert(expert).second) {
        server.flow.AskInPlaceOfDisk({.expert = expert, .rows = 1, .holders = holders});
      } else {
        server.flow.OnLoaded(expert);
        Give(i, expert, RowOf({server.layer, expert}));
      }
      Drive(i);
    });
  }

  void OnAsk(std::size_t host, const HostCall& call) {
    const bool holds_all = std::ranges::all_of(call.experts, [&](std::uint32_t expert) {
      return Holds(host, {call.layer, expert});
    });
    if (!holds_all || !servers_[host]->queue.Add(call.asker, call)) return Refuse(host, call);
    Compute(host);
  }
  void Refuse(std::size_t host, const HostCall& call) {
    nodes_.Post(host, call.asker, [this, i = call.asker, id = call.call] {
      servers_[i]->flow.OnRefused(id);
      Drive(i);
    });
  }
  void Compute(std::size_t host) {
    if (servers_[host]->computing) return;
    const std::optional<HostCall> call = servers_[host]->queue.Next();
    if (!call) return;
    servers_[host]->computing = true;
    nodes_.Later(host, static_cast<Nanos>(1 + nodes_.rng().Below(40)) * kMs, [this, host, call] {
      servers_[host]->computing = false;
      if (nodes_.now() <= call->worth_until) Answer(host, *call);
      Compute(host);
    });
  }
  void Answer(std::size_t host, const HostCall& call) {
    for (const std::uint32_t expert : call.experts) {
      const ExpertId id{call.layer, expert};
      if (!Holds(host, id)) return Refuse(host, call);
      nodes_.Post(host, call.asker, [this, i = call.asker, from = call.call, id] {
        if (!servers_[i]->flow.OnAnswered(from, id.expert)) return;
        ASSERT_EQ(servers_[i]->layer, id.layer);
        servers_[i]->loading.erase(id.expert);
        Give(i, id.expert, RowOf(id));
        Drive(i);
      });
    }
    // That was all.
    nodes_.Post(host, call.asker, [this, i = call.asker, from = call.call] {
      servers_[i]->flow.OnRefused(from);
      Drive(i);
    });
  }

  void OnLeft(std::size_t i, const std::string& name) {
    const std::size_t peer = *nodes_.IndexOf(name);
    servers_[i]->flow.OnLost(static_cast<PeerIndex>(peer));
    servers_[i]->fetch.OnLost(peer + 1);
    servers_[i]->queue.Forget(peer);
    Drive(i);
    GoOnFetching(i);
  }

  bool Fetch(std::size_t i, const HoldStep& step, std::function<void()> done) {
    std::vector<ExpertFetch::Wanted> wanted;
    for (const std::uint32_t expert : step.experts) {
      const ExpertId id{step.layer, expert};
      const std::vector<std::byte> bytes = BytesOf(id);
      ExpertFetch::Wanted one{.id = id,
                              .bytes = bytes.size(),
                              .checksum = SumOf(bytes),
                              .sources = {},
                              .longest = 5'000 * kMs};
      for (const PeerIndex peer : HoldersOf(i, id)) one.sources.push_back(peer + 1);
      if (!one.sources.empty()) wanted.push_back(std::move(one));
    }
    if (wanted.empty()) return false;
    servers_[i]->fetch.Begin(std::move(wanted));
    servers_[i]->fetched = std::move(done);
    GoOnFetching(i);
    return true;
  }
  void GoOnFetching(std::size_t i) {
    Server& server = *servers_[i];
    if (!server.fetched) return;
    while (const auto request = server.fetch.Next(nodes_.now())) {
      const std::size_t source = request->source - 1;
      if (!nodes_.Post(i, source,
                       [this, i, source, asked = *request] { GivePiece(source, i, asked); })) {
        server.fetch.OnLost(request->source);
      }
    }
    if (const auto experts = server.fetch.TakeDone()) {
      for (const auto& [id, bytes] : *experts) ASSERT_EQ(bytes, BytesOf(id));
      return std::exchange(server.fetched, nullptr)();
    }
    if (const auto next = server.fetch.NextTime()) {
      nodes_.Later(i, std::max<Nanos>(1, *next - nodes_.now()), [this, i] { GoOnFetching(i); });
    }
  }
  void GivePiece(std::size_t source, std::size_t i, const ExpertFetch::Request& asked) {
    const bool holds = Holds(source, asked.id);
    nodes_.Post(source, i, [this, source, i, asked, holds] {
      if (!holds) {
        servers_[i]->fetch.OnRefused(source + 1, asked.number);
        return GoOnFetching(i);
      }
      const std::vector<std::byte> bytes = BytesOf(asked.id);
      const std::size_t size = std::min<std::size_t>(4, bytes.size() - asked.offset);
      servers_[i]->fetch.OnPiece(source + 1,
                                 {.number = asked.number,
                                  .id = asked.id,
                                  .total = bytes.size(),
                                  .offset = asked.offset,
                                  .checksum = SumOf(bytes),
                                  .data = std::span(bytes).subspan(asked.offset, size)},
                                 nodes_.now());
      GoOnFetching(i);
    });
  }

  SimulatedNodes& nodes_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::uint64_t answered_ = 0;
  CallCounters calls_;  // of the dead
  FetchCounters fetches_;
};

}  // namespace troupe
