// A node of a cluster, alive: links to peers, the state machine that decides (node_core.h), an
// engine that asks its peers and answers them. What it does, it does on the links' thread and one
// of its own; what concerns the engine, between two passes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
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
  std::string address;  // where peers reach it: one of node.addresses
  TransportOptions transport;
  NodeOptions node;
  std::uint32_t peer_threads = 1;  // that compute for peers
  CallRules calls;
  std::function<void(const std::string& line)> say;
};

// Has the engine's thread do something between two passes.
using BetweenPasses = std::function<void(std::function<void()>)>;

struct ClusterState {
  std::string name;
  bool leads = false;
  std::uint64_t epoch = 0;  // of the plan; 0: there is none
  bool settled = false;     // and it is carried out
  std::uint32_t held = 0;
  std::vector<PeerEntry> peers;
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

  // From now on it talks to its peers.
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
  void Perform() TROUPE_REQUIRES(mu_);
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

  mutable Mutex mu_;
  CondVar changed_;
  std::unique_ptr<NodeCore> core_ TROUPE_GUARDED_BY(mu_);
  std::vector<HoldingStep> to_do_ TROUPE_GUARDED_BY(mu_);  // of the engine's thread
  bool stopping_ TROUPE_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace troupe
