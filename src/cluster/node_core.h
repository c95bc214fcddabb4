// A node of a cluster as a state machine: who the peers are and whether they may be talked to, what
// each holds, who leads, which plan is in force, and the next step towards it. Calls for rows go
// another way (peer_calls.h, peer_host.h).
//
// Pure: frames, losses of links and time come in, actions go out; no socket, thread, clock or
// engine. A test drives it by hand, and a simulated cluster by a seed.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "cluster/plan/aged_activity.h"
#include "cluster/plan/cluster_plan.h"
#include "cluster/plan/holding_steps.h"
#include "cluster/plan/plan_maker.h"
#include "cluster/transport/peer_links.h"
#include "cluster/wire/hello.h"
#include "cluster/wire/peer_message.h"

namespace troupe {

struct NodeOptions {
  // Of all nodes, this one's too, in the order that all of them are told. The first one leads.
  std::vector<std::string> addresses;
  std::string placer = "dancemoe";
  Nanos report_every = 10'000'000'000;
  Nanos plan_every = 300'000'000'000;
  // The first plan waits so long for those that have not come.
  Nanos gather = 5'000'000'000;
  // A node that has been away so long is left out of the next plan.
  Nanos forget_after = 60'000'000'000;
  double half_life_seconds = 600;  // of activations
};

// What this node is, which does not change.
struct NodeSelf {
  PeerHello hello;  // as it is said to peers, but for the plan's epoch
  std::uint32_t first_layer = 0;
  std::uint32_t experts_per_token = 1;
  std::uint64_t expert_bytes = 1;
  std::uint32_t most_held = 0;
  std::vector<std::uint8_t> held;  // by the grid's index: at the beginning
};

namespace node_action {
struct Send {
  LinkId link = 0;
  std::vector<std::byte> frame;
};
struct CloseLink {
  LinkId link = 0;
};
struct PeerCame {
  std::string name;
  LinkId link = 0;
  double round_trip_seconds = 0;
};
struct PeerHolds {
  LinkId link = 0;
  ExpertBits held;
};
struct PeerLeft {
  LinkId link = 0;
};
// To be carried out; then OnHeld is to be called.
struct Carry {
  HoldingStep step;
};
struct Say {
  std::string text;
};
}  // namespace node_action

using NodeAction = std::variant<node_action::Send, node_action::CloseLink, node_action::PeerCame,
                                node_action::PeerHolds, node_action::PeerLeft, node_action::Carry,
                                node_action::Say>;

class NodeCore {
 public:
  NodeCore(NodeSelf self, NodeOptions options, Nanos now);

  void OnLinkOpened(LinkId link, Nanos now);
  // Of any kind but calls and their answers.
  void OnFrame(LinkId link, std::span<const std::byte> frame, Nanos now);
  void OnLinkClosed(LinkId link, Nanos now);
  // The step is done, or could not be: what is held now.
  void OnHeld(std::vector<std::uint8_t> held, bool as_planned);
  // Of the own users, since the last time.
  void OnActivity(std::vector<std::uint32_t> counts, Nanos now);
  // Looks at what is due.
  void OnTime(Nanos now);

  std::vector<NodeAction> TakeActions() { return std::exchange(actions_, {}); }

  // Whether calls of that link are answered: the peer has proved what it must.
  bool IsPeer(LinkId link) const;
  bool leads() const { return leads_; }
  const std::optional<ClusterPlan>& plan() const { return plan_; }
  // Nothing is left to be done for the plan.
  bool settled() const { return plan_ && !carrying_ && !Step(); }
  std::vector<std::string> Peers() const;  // that are there

 private:
  struct Link {
    std::optional<PeerHello> hello;  // once it was accepted
    Nanos pinged = 0;
    std::optional<double> round_trip;  // once the first pong has come
  };
  struct Peer {
    LinkId link = 0;  // 0: it is away
    PeerHello hello;
    ExpertBits held;
    std::uint64_t sequence = 0;  // of its holdings
    Nanos seen = 0;              // last, while it is away
  };
  struct Told {
    NodeFacts facts;
    AgedActivity activity;
  };

  void OnHello(LinkId link, const PeerHello& hello, Nanos now);
  std::optional<PeerRefused> ProblemOf(const PeerHello& hello) const;
  void Refuse(LinkId link, const PeerRefused& refused);
  void OnPong(LinkId link, Nanos now);
  void OnHoldings(const std::string& name, const PeerHoldings& holdings);
  void OnReport(const std::string& name, const PeerReport& report);
  void OnPlanNotice(const std::string& name, const PeerPlanNotice& notice);
  void TakeLink(const std::string& name, LinkId link);
  void Adopt(ClusterPlan plan);
  void Plan(Nanos now);
  void SendReport(Nanos now);
  void GoOn();
  std::optional<HoldingStep> Step() const;
  PeerHello Hello() const;
  PeerHoldings Holdings() const;
  void SendToPeers(const std::vector<std::byte>& frame);
  void Send(LinkId link, std::vector<std::byte> frame);
  bool Leads(const PeerHello& hello) const { return hello.address == options_.addresses.front(); }

  const NodeSelf self_;
  const NodeOptions options_;
  const bool leads_;
  std::map<LinkId, Link> links_;
  std::map<std::string, Peer> peers_;
  std::vector<std::uint8_t> held_;
  std::uint64_t sequence_ = 0;
  std::optional<ClusterPlan> plan_;
  std::uint64_t newest_epoch_ = 0;  // that anybody has told of
  bool carrying_ = false;
  bool stuck_ = false;                  // the plan's next step could not be done
  std::vector<std::uint32_t> counted_;  // since the last report
  Nanos counted_since_;
  Nanos report_at_, plan_at_;
  bool plan_soon_ = false;            // another node has told of itself
  std::map<std::string, Told> told_;  // the leader's
  std::vector<NodeAction> actions_;
};

}  // namespace troupe
