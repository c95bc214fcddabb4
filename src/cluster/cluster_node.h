// A node of a cluster, alive: links to peers, the state machine that decides (node_core.h), an
// engine that asks its peers and answers them, and etcd where it says who the nodes are. What it
// does, it does on the links' thread, etcd's and one of its own; what concerns the engine, between
// two passes.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "cluster/etcd/etcd_store.h"
#include "cluster/members/membership.h"
#include "cluster/node_core.h"
#include "cluster/peer_calls.h"
#include "cluster/peer_directory.h"
#include "cluster/peer_host.h"
#include "cluster/transport/peer_links.h"
#include "runtime/engine.h"

namespace troupe {

struct ClusterOptions {
  std::string cluster = "troupe";
  std::string name;     // of this node
  std::string address;  // where peers reach it: one of node.addresses, if there are any
  TransportOptions transport;
  NodeOptions node;
  std::optional<EtcdOptions> etcd;  // where node.addresses is empty
  Nanos lease = 10'000'000'000;     // in etcd: how long a silent node counts as alive
  std::uint32_t peer_threads = 1;   // that compute for peers
  CallRules calls;
  std::function<void(const std::string& line)> say;
  // The node cannot be one of the cluster: its name is taken, or the cluster serves another model.
  // Called once, on any thread.
  std::function<void(const Status& why)> fail;
};

// Has the engine's thread do something between two passes.
using BetweenPasses = std::function<void(std::function<void()>)>;

struct ClusterState {
  struct Event {
    double seconds_ago = 0;
    std::string text;
  };

  std::string cluster, name, address;
  bool leads = false;
  std::string leader;  // its name; empty: nobody leads, or it is not here
  // What etcd says of this node; nothing where the nodes are a list.
  std::optional<MemberState> membership;
  std::uint64_t epoch = 0;                                   // of the plan; 0: there is none
  bool settled = false;                                      // and it is carried out
  std::vector<std::pair<std::string, std::size_t>> planned;  // experts of each node, by the plan
  std::uint32_t held = 0;
  std::vector<PeerEntry> peers;
  std::vector<Event> events;  // the last ones, oldest first
  CallCounters asked;
  HostCounters answered;
  LinkCounters links;
};

class ClusterNode final : private LinkEvents {
 public:
  // Before any pass: opens its door, and lets the engine ask peers. The engine must outlive it, and
  // run no pass after it is gone.
  static Result<std::unique_ptr<ClusterNode>> Open(Engine& engine, ClusterOptions options);
  ~ClusterNode() override;
  ClusterNode(const ClusterNode&) = delete;
  ClusterNode& operator=(const ClusterNode&) = delete;

  // What it takes beside the engine, if passes have no more than `rows`.
  static Bytes MemoryFor(const ModelConfig& config, std::uint32_t rows);

  // From now on it talks to its peers, and to etcd.
  Status Begin(BetweenPasses between);
  // Any thread.
  ClusterState State() const;

 private:
  ClusterNode(Engine& engine, ClusterOptions options, CallShape shape);

  void OnOpened(LinkId link, const PeerIdentity& peer) override;
  void OnFrame(LinkId link, std::span<const std::byte> frame) override;
  void OnClosed(LinkId link, const Status& why) override;
  void OnUnreachable(LinkId link, const Status& why) override;

  void Main();
  bool HasLeft() const TROUPE_REQUIRES(mu_);
  void OnStore(const KvEvent& event);
  void LookAtMembership() TROUPE_REQUIRES(mu_);
  void Perform() TROUPE_REQUIRES(mu_);
  void Say(const std::string& line);
  void Dial(const std::string& address) TROUPE_REQUIRES(mu_);
  void CarryOnEngine(const HoldingStep& step);
  std::vector<std::uint8_t> HeldNow();

  Engine& engine_;
  const ClusterOptions options_;
  const MonotonicClock clock_;
  PeerDirectory directory_;
  std::unique_ptr<PeerLinks> links_;
  PeerCalls calls_;
  std::unique_ptr<PeerHost> host_;
  BetweenPasses between_;

  struct Said {
    Nanos at = 0;
    std::string text;
  };
  mutable Mutex said_mu_;
  std::deque<Said> said_ TROUPE_GUARDED_BY(said_mu_);

  mutable Mutex mu_;
  CondVar changed_;
  std::unique_ptr<NodeCore> core_ TROUPE_GUARDED_BY(mu_);
  std::unique_ptr<Membership> membership_ TROUPE_GUARDED_BY(mu_);  // null: the nodes are a list
  std::map<std::string, LinkId> dialled_ TROUPE_GUARDED_BY(mu_);
  Status dial_problem_ TROUPE_GUARDED_BY(mu_);
  bool failed_ TROUPE_GUARDED_BY(mu_) = false;
  std::vector<HoldingStep> to_do_ TROUPE_GUARDED_BY(mu_);  // of the engine's thread
  std::optional<Nanos> leaving_since_ TROUPE_GUARDED_BY(mu_);
  std::thread thread_;
  std::unique_ptr<EtcdStore> etcd_;  // last: its thread tells of what the others are told
};

}  // namespace troupe
