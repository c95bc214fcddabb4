// What a node of a cluster is told to be.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "cluster/calls/call_flow.h"
#include "cluster/face/etcd_options.h"
#include "cluster/face/transport_options.h"

namespace troupe {

struct PlannerRules {
  std::string placer = "dancemoe";
  Nanos plan_every = 300'000'000'000;
  // The first plan waits so long for those that have not come.
  Nanos gather = 5'000'000'000;
  // A node that has been away so long is left out of the next plan, which is made at once.
  Nanos forget_after = 60'000'000'000;
  std::uint32_t copies = 1;  // of each expert, where memory allows

  // Of activations: who plans often wants plans that follow, so what was asked before the last few
  // of them counts for little.
  double half_life_seconds() const {
    constexpr double kMost = 600, kPlans = 2;
    return std::min(kMost, kPlans * static_cast<double>(plan_every) * 1e-9);
  }
};

struct NodeOptions {
  // Of all nodes, this one's too, in the order that all of them are told. The first one leads.
  // Empty: a store says who they are.
  std::vector<std::string> addresses;
  Nanos report_every = 10'000'000'000;
  bool new_model = false;  // what it serves may take the place of what the store's plan is for
  PlannerRules planner;
};

struct ClusterOptions {
  std::string cluster = "troupe";
  std::string name;     // of this node
  std::string address;  // where peers reach it: one of node.addresses, if there are any
  std::string listen;   // where it listens for them, with or without a port; empty: there
  TransportOptions transport;
  NodeOptions node;
  std::optional<EtcdOptions> etcd;  // where node.addresses is empty
  bool new_cluster = false;         // it may begin beside others that etcd has
  Nanos lease = 10'000'000'000;     // in etcd: how long a silent node counts as alive
  std::uint32_t peer_threads = 1;   // that compute for peers
  CallRules calls;
  double verify = 0;  // the share of peers' answers that are computed again
  std::function<void(const std::string& line)> say;
  // The node cannot be one of the cluster: its name is taken, the cluster serves another model, or
  // its last plan is for one, or etcd does not know the cluster.
  // Called once, on any thread.
  std::function<void(const Status& why)> fail;
  // Why lines of this machine's own log of requests are lost now; empty: they are written. Called
  // on the node's thread; may be absent.
  std::function<std::string()> log_trouble = {};
  std::string remark = {};  // one that is said at the beginning
};

}  // namespace troupe
