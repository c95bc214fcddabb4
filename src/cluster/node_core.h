// A node of a cluster as a state machine: who the peers are and whether they may be talked to, what
// each holds, who leads, which plan is in force, and the next step towards it. Calls for rows go
// another way (peer_calls.h, peer_host.h); when a plan is due and of what it is made is
// planner.h's.
//
// Who the nodes are, who leads and what the newest plan is says either a fixed list or a store
// (members/membership.h, told by member_news.h). With a list, plans travel over links.
//
// Pure: frames, losses of links and time come in, actions go out; no socket, thread, clock or
// engine. A test drives it by hand, and a simulated cluster by a seed.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "cluster/earlier_lives.h"
#include "cluster/face/node_options.h"
#include "cluster/face/plan_look.h"
#include "cluster/first_contact.h"
#include "cluster/members/plan_epochs.h"
#include "cluster/plan/aged_activity.h"
#include "cluster/plan/cluster_plan.h"
#include "cluster/plan/holding_steps.h"
#include "cluster/plan/plan_job.h"
#include "cluster/plan_follower.h"
#include "cluster/planner.h"
#include "cluster/thrown_out.h"
#include "cluster/transport/peer_identity.h"
#include "cluster/transport/peer_links.h"
#include "cluster/wire/hello.h"
#include "cluster/wire/peer_message.h"

namespace troupe {

// Beyond the least that more than half of the others tell of.
inline constexpr std::uint64_t kMostEpochRise = std::uint64_t{1} << 40;

// A node keeps what it knows of a peer under the peer's name, for as long as it runs. A peer can
// give another name with each new link, so this is the most names that it takes in.
inline constexpr std::size_t kMostPeerNames = 1'024;

// As a store says.
struct NodeLeader {
  std::string node;
  std::string address;  // empty: not known
  bool self = false;

  bool operator==(const NodeLeader&) const = default;
};

// What this node is, which does not change.
struct NodeSelf {
  PeerHello hello;  // as it is said to peers, but for the plan's epoch
  std::uint32_t first_layer = 0;
  std::uint32_t experts_per_token = 1;
  std::uint64_t expert_bytes = 1;
  bool experts_travel = false;  // their checksums are known
  std::uint32_t most_held = 0;
  std::vector<std::uint8_t> held;  // by the grid's index: at the beginning
};

namespace node_action {
// A link to whoever is there, again and again until HangUp.
struct Dial {
  std::string address;
};
struct HangUp {
  std::string address;
};
struct Send {
  LinkId link = 0;
  std::vector<std::byte> frame;
};
// For good: it leads to this node itself.
struct CloseLink {
  LinkId link = 0;
};
// With this as the last frame, if it is one. If it was dialled, it is dialled again after a while.
struct BreakLink {
  LinkId link = 0;
  std::vector<std::byte> frame;
};
struct PeerCame {
  std::string name;
  LinkId link = 0;
  std::uint64_t start = 0;
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
// To be worked on while other things go on; then OnPlanChosen is to be called.
struct Choose {
  PlanJob job;
};
// All of the next answers of the peer of that start are to be checked.
struct Suspect {
  std::uint64_t start = 0;
};
// Into the store; then OnPlanWritten is to be called.
struct WritePlan {
  std::string plan;
};
struct Say {
  std::string text;
};
// This node is none of the cluster: the end, in one line.
struct Fail {
  std::string why;
};
}  // namespace node_action

using NodeAction =
    std::variant<node_action::Dial, node_action::HangUp, node_action::Send, node_action::CloseLink,
                 node_action::BreakLink, node_action::PeerCame, node_action::PeerHolds,
                 node_action::PeerLeft, node_action::Carry, node_action::Choose,
                 node_action::Suspect, node_action::WritePlan, node_action::Say, node_action::Fail>;

class NodeCore {
 public:
  NodeCore(NodeSelf self, NodeOptions options, Nanos now);

  void OnLinkOpened(LinkId link, const PeerIdentity& peer, Nanos now);
  // Of any kind but calls and their answers.
  void OnFrame(LinkId link, std::span<const std::byte> frame, Nanos now);
  void OnLinkClosed(LinkId link, std::string_view why, Nanos now);
  // No link came about to whoever is there, who has another authority.
  void OnDistrusted(const std::string& address, std::string_view why);
  // Those that were thrown out may be peers again, and what others have said of any is forgotten.
  // How many they were.
  std::size_t Readmit(Nanos now);
  const ThrownOut& thrown_out() const { return thrown_out_; }
  // The step is done, or could not be: what is held now.
  void OnHeld(std::vector<std::uint8_t> held, bool as_planned);
  // The peer of that start has answered what this node computes otherwise. It is one no more,
  // though it starts anew, and all others are told.
  void OnWrongAnswer(std::uint64_t start, ExpertId id, Nanos now);
  // Of the own users, since the last time.
  void OnActivity(std::vector<std::uint32_t> counts, Nanos now);
  // This node is to go: others get what it holds, and it lets each go once another one holds it.
  // What comes of it, in words. kFailedPrecondition: nobody else is here who could hold anything.
  Result<std::string> Drain();
  // Looks whether another plan is better: when, in words. kFailedPrecondition: another one leads.
  Result<std::string> PlanNow(Nanos now);
  // Whether the own users' passes have given up sharing, or do share again.
  void OnSharing(bool given_up);
  // Since the beginning, newest first in weight; the next report tells of it.
  void OnMeasured(NodeMeasures measured);
  // Looks at what is due.
  void OnTime(Nanos now);

  // What a store says. All nodes' addresses, this one's too:
  void OnMembers(const std::vector<std::string>& addresses);
  // It lists this node, or does not, for good as it seems.
  void OnListed() { was_listed_ = true; }
  void OnKeptOut(const std::string& why);
  void OnLeader(const std::optional<NodeLeader>& leader, Nanos now);
  // Newer than any before.
  void OnPlan(std::uint64_t epoch, std::string_view plan);
  // Whether the store has none, or one that is older than what some node follows: soon one is
  // written, if only the last one again.
  void OnPlanWanted(bool wanted, Nanos now);
  bool plan_wanted() const { return wanted_; }
  void OnPlanChosen(Result<PlanChoice> choice, Nanos now);
  void OnPlanWritten(const Status& outcome, Nanos now);

  std::vector<NodeAction> TakeActions() { return std::exchange(actions_, {}); }

  // Whether calls of that link are answered: the peer has proved what it must.
  bool IsPeer(LinkId link) const;
  const std::string& name() const { return self_.hello.node; }
  bool leads() const { return leads_; }
  std::string LeaderName() const;  // empty: nobody leads, or it is not here
  const std::optional<ClusterPlan>& plan() const { return follower_.plan(); }
  // Nothing is left to be done for the plan.
  bool settled() const { return follower_.settled(); }
  // When this node looked last, as the one that leads, whether another plan is better.
  const std::optional<PlanLook>& look() const { return look_; }
  // How many plans the store did not take.
  std::uint64_t plans_unwritten() const { return plans_unwritten_; }
  // Goes up when the plan or what is held here has changed.
  std::uint64_t changes() const { return follower_.sequence() + follower_.epoch(); }
  bool draining() const { return follower_.draining(); }
  const PlanFollower& follower() const { return follower_; }
  std::vector<std::string> Peers() const;  // that are there
  std::size_t links() const;               // to them
  // Hung up as one is enough, by this node and by peers.
  std::uint64_t links_spared() const { return links_spared_; }
  std::uint64_t links_spared_by_peers() const { return links_spared_by_peers_; }

 private:
  struct Link {
    PeerIdentity peer;
    std::optional<PeerHello> hello;  // once it was accepted
    Nanos pinged = 0;
    std::optional<double> round_trip;  // once the first pong has come
  };
  struct Peer {
    LinkId link = 0;  // 0: it is away
    PeerHello hello;
    ExpertBits held;
    std::uint64_t held_by = 0;   // the epoch of the plan that it follows
    std::uint64_t sequence = 0;  // of its holdings
    Nanos seen = 0;              // last, while it is away
    Nanos linked = 0;            // since when by the link that it has now
  };

  void OnHello(LinkId link, const PeerHello& hello, Nanos now);
  void OnRefused(LinkId link, const PeerRefused& refused, Nanos now);
  std::optional<PeerRefused> ProblemOf(const Link& link, const PeerHello& hello) const;
  // One name too many.
  std::optional<PeerRefused> ProblemOfName(const PeerHello& hello) const;
  void Refuse(LinkId link, const PeerRefused& refused, Nanos now);
  // The two of them do not fit, and both know it: this node ends if it is the one that is wrong.
  void EndIfWrong(PeerRefused::Reason reason, const PeerHello& other);
  std::string LeaderAddress() const;
  void Say(std::string text) { actions_.push_back(node_action::Say{std::move(text)}); }
  void Fail(std::string why) {
    ends_ = true;
    actions_.push_back(node_action::Fail{std::move(why)});
  }
  void OnPong(LinkId link, Nanos now);
  void OnHoldings(const std::string& name, const PeerHoldings& holdings);
  void OnReport(const std::string& name, const PeerReport& report);
  void OnPlanNotice(const std::string& name, const PeerPlanNotice& notice);
  void OnAccusation(const PeerHello& accuser, const PeerAccusation& accusation, Nanos now);
  // Its links are new: it says again what it still holds to.
  void ForgetWordOf(const std::string& accuser);
  // Thrown out by this node, or, as they say, by more than half of the others.
  bool IsOutOfPlans(std::uint64_t start) const;
  std::optional<PeerHello> LifeOf(std::uint64_t start) const;  // of a peer that is or was
  // Whether it was thrown out in another life, of which all others are told.
  bool IsThrownOut(const Link& link, const PeerHello& hello, Nanos now);
  // Whether a node of another name or address has that start.
  bool IsAnothersStart(const PeerHello& hello) const;
  void SayIfNotListed(const PeerHello& hello);
  void CloseLinksOfOtherStarts(const PeerHello& hello);
  void TakeLink(const std::string& name, LinkId link);
  // What a peer must know that may have missed it.
  void TellAll(LinkId link);
  void LookWhomToDial();
  // node_core_links.cc: of two links to a peer one is kept.
  bool IsToBeKept(const Link& link) const;
  bool IsReached(const std::string& address) const;
  void KeepOneLinkEach();
  void CountIfSpared(LinkId link);
  void DropLink(LinkId link, std::string_view why, Nanos now);
  bool YieldsTo(const PeerHello& other);
  void TakePlan(std::uint64_t epoch, std::string_view text, std::string_view from);
  bool EndsAtPlan(std::uint64_t epoch, std::string_view text);
  void Adopt(ClusterPlan plan);
  void Plan(Nanos now);
  std::uint64_t NextEpoch() const;
  std::uint64_t EpochOfMost() const;
  void TellWhetherSettled();
  void SendReport(Nanos now);
  void LetLittleUsedRest();
  void AddWhatWasTold();
  // The next step towards the plan, if none is under way.
  void GoOn();
  void TellHoldings();
  std::vector<OtherNode> Others(const ClusterPlan& plan) const;
  PeerHello Hello() const;
  void SendToPeers(const std::vector<std::byte>& frame);
  void Send(LinkId link, std::vector<std::byte> frame);
  static PeerAccusation AccusationOf(std::uint64_t start, ExpertId id) {
    return {.accused = start, .layer = id.layer, .expert = id.expert};
  }
  bool has_list() const { return !options_.addresses.empty(); }
  bool Leads(const PeerHello& hello) const {
    return has_list() ? hello.address == options_.addresses.front()
                      : leader_ && hello.node == leader_->node;
  }

  const NodeSelf self_;
  NodeOptions options_;
  std::optional<NodeLeader> leader_;  // as a store says
  std::vector<std::string> members_;  // addresses of all nodes
  std::set<std::string> dialled_;     // of them, and of those that were
  bool leads_ = false;
  bool wanted_ = false;    // a plan, whether it is better or not
  bool choosing_ = false;  // one is being chosen
  bool writing_ = false;   // one is on its way to the store
  std::optional<PlanLook> look_;
  std::uint64_t plans_unwritten_ = 0;
  std::string said_unwritten_;   // why, without numbers: they differ from one try to the next
  std::uint32_t unwritten_ = 0;  // tries since a plan was written
  Nanos write_again_at_ = 0;     // no plan is made before, unless somebody wants one now
  bool said_no_memory_ = false;
  bool said_lists_differ_ = false;
  std::uint64_t links_spared_ = 0, links_spared_by_peers_ = 0;
  std::optional<Adoption::Why> said_why_;  // a plan stays
  std::uint64_t settled_of_ = 0;           // the epoch of the plan that was carried out last
  FirstContact first_contact_;
  bool was_listed_ = false;  // by the store, which knows nothing of certificates
  bool ends_ = false;        // by its own word: it plans no more
  std::map<LinkId, Link> links_;
  std::map<std::string, Peer> peers_;
  EarlierLives earlier_;  // of peers
  ThrownOut thrown_out_;
  // By the accused's start: the accusers' names, since they may start anew as often as they like,
  // and whether they have said so by their last link.
  std::map<std::uint64_t, std::map<std::string, bool>> accusers_;
  PlanFollower follower_;
  Nanos now_ = 0;         // when it looked last what is due
  Nanos adopted_at_ = 0;  // the plan in force
  Nanos go_on_at_ = 0;
  std::uint64_t told_sequence_ = 0;     // of what is held: peers know it
  std::uint64_t newest_epoch_ = 0;      // that anybody has told of
  std::uint64_t not_followed_ = 0;      // of the last plan that cannot be followed here
  std::vector<std::uint32_t> counted_;  // since the last report
  AgedActivity told_before_;            // all that was reported
  std::uint64_t told_to_ = 0;           // the start of the leader that knows it
  Nanos counted_since_;
  bool sharing_given_up_ = false;
  NodeMeasures measured_;
  Nanos report_at_;
  Planner planner_;
  std::vector<NodeAction> actions_;
};

}  // namespace troupe
