// A node of a cluster as the program that runs it sees it, and what it tells of itself. The node
// itself is cluster/cluster_node.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "cluster/calls/call_flow.h"
#include "cluster/calls/expert_fetch.h"
#include "cluster/calls/peer_speed.h"
#include "cluster/face/migration_look.h"
#include "cluster/face/node_options.h"
#include "cluster/face/plan_look.h"
#include "cluster/members/member_state.h"
#include "expert/expert_grid.h"
#include "expert/expert_id.h"
#include "expert/flow/distribution_judge.h"
#include "expert/row_form.h"
#include "runtime/engine.h"

namespace troupe {

// Calls of peers.
struct HostCounters {
  std::uint64_t calls = 0, experts = 0, rows = 0;
  std::uint64_t busy = 0, not_held = 0, bad = 0;  // refused
  std::uint64_t cancelled = 0, expired = 0;       // before they were begun
  std::uint64_t unsent = 0;      // computed: the link had no room for the answer, or was gone
  double seconds = 0;            // of computing
  double held_back_seconds = 0;  // of these: others had the processor

  bool operator==(const HostCounters&) const = default;
};

// Answers of peers that were computed again.
struct CheckCounters {
  std::uint64_t checked = 0, wrong = 0;
  std::uint64_t own_wrong = 0;      // of the others: it was the own file that has rotted
  std::uint64_t undecided = 0;      // whose rows were wrong could not be found out
  std::uint64_t rows_left_out = 0;  // of answers to be checked: more came than there was room for
};

struct ClusterState {
  struct Peer {
    std::string name;
    bool here = false;
    double round_trip_seconds = 0;
    std::size_t held = 0;
    std::uint64_t bytes_sent = 0, bytes_received = 0;  // over the link that it is asked by
    // As calls were measured, of one that brings nothing back and of the link; 0: not known.
    double call_seconds = 0, bytes_per_second = 0;
  };
  // An address that was dialled in vain, and why.
  struct Unreachable {
    std::string address, why;
  };
  // A peer that has answered wrong rows, of which expert.
  struct ThrownOut {
    std::string name, address;
    ExpertId id;
  };
  struct Event {
    double seconds_ago = 0;
    std::string text;
  };

  std::string cluster, name, address;
  std::string kernels;  // the instruction set that it computes with
  bool leads = false;
  std::string leader;  // its name; empty: nobody leads, or it is not here
  // What etcd says of this node; nothing where the nodes are a list.
  std::optional<MemberState> membership;
  std::string not_listed;  // why etcd, which can be reached, does not list it for so long; empty
  bool draining = false;
  std::uint64_t epoch = 0;                                   // of the plan; 0: there is none
  bool settled = false;                                      // and it is carried out
  std::vector<std::pair<std::string, std::size_t>> planned;  // experts of each node, by the plan
  std::uint32_t held = 0;
  std::vector<Peer> peers;            // that were ever here
  std::vector<ThrownOut> thrown_out;  // until they are let in again
  std::vector<Event> events;          // the last ones, oldest first
  RowForm answers = RowForm::kFloat;  // in which peers answer, where no request wants every bit
  CallCounters asked;
  CallSeconds asked_seconds;
  HostCounters answered;
  CheckCounters checks;
  FetchCounters fetched;                             // experts from peers, to be held here
  std::uint64_t fetched_by_peers = 0;                // bytes of experts that were given to peers
  std::uint64_t experts_read = 0;                    // behind passes, to be held here
  std::uint64_t bytes_sent = 0, bytes_received = 0;  // of frames
  std::size_t links = 0;                             // to peers, now
  std::uint64_t links_spared = 0;                    // hung up here, as the peer has dialled too
  std::uint64_t links_lost = 0;
  std::vector<Unreachable> unreachable;  // now
  std::int64_t certificate_expires = 0;  // the own one, by which peers know it; 0: there is none
  std::uint64_t dials_failed = 0;
  // Of a node that leads: what came of its last look at plans, and seconds since.
  std::optional<PlanLook> look;
  double looked_seconds_ago = 0;
  std::uint64_t plans_unwritten = 0;  // that etcd did not take, since the start
  // Where an answer of 'do not distribute' stands, by the size of passes, and the last decisions.
  std::vector<DistributionReport> distribution;
  std::vector<JudgedLayer> judged;
  // Experts of the plan whose slots the cache has, as sharing does not pay here: now, and ever.
  std::size_t resting = 0;
  std::uint64_t rested = 0;
  MigrationLook migration;  // towards the plan in force, of all nodes that are here
  // Goes up when what a node holds, or is to hold, has changed.
  std::uint64_t holdings_version = 0;
};

// Which experts each node holds, and is to hold, as far as it is known here.
struct ClusterHoldings {
  // By layer of the model, rising.
  using Experts = std::vector<std::vector<std::uint32_t>>;
  struct Node {
    std::string name;
    bool here = false;
    Experts planned, held;
  };

  std::uint64_t version = 0;  // ClusterState's
  std::uint64_t epoch = 0;    // of the plan; 0: there is none
  ExpertGrid grid;
  std::uint32_t first_layer = 0;  // that has experts
  std::vector<Node> nodes;        // by name
};

// Has the engine's thread do something between two passes.
using BetweenPasses = std::function<void(std::function<void()>)>;

class RunningNode {
 public:
  virtual ~RunningNode() = default;

  // From now on it talks to its peers, and to etcd.
  virtual Status Begin(BetweenPasses between) = 0;
  // Any thread.
  virtual ClusterState State() const = 0;
  virtual ClusterHoldings Holdings() const = 0;
  // Orders, and what comes of each, in words. kFailedPrecondition: no other node could hold
  // anything; another one leads.
  virtual Result<std::string> Drain() = 0;
  virtual Result<std::string> PlanNow() = 0;
  // Peers that it has thrown out may come again. kFailedPrecondition: there are none.
  virtual Status Readmit() = 0;
};

// Before any pass: opens its door, and lets the engine ask peers. The engine must outlive it, and
// run no pass after it is gone.
using OpenNode = Result<std::unique_ptr<RunningNode>> (*)(Engine& engine, ClusterOptions options);

}  // namespace troupe
