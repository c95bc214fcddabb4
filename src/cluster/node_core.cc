#include "cluster/node_core.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "cluster/face/certificate_error.h"
#include "cluster/wire/accusation.h"
#include "cluster/wire/holdings.h"
#include "cluster/wire/ping.h"
#include "cluster/wire/plan_notice.h"

namespace troupe {
namespace {

using Refusal = PeerRefused::Reason;

}  // namespace

NodeCore::NodeCore(NodeSelf self, NodeOptions options, Nanos now)
    : self_(std::move(self)),
      options_(std::move(options)),
      members_(options_.addresses),
      leads_(has_list() && Leads(self_.hello)),
      follower_({.node = self_.hello.node,
                 .grid = self_.hello.grid,
                 .most_held = self_.most_held,
                 .held = self_.held,
                 .copies = options_.planner.copies},
                [this](const ClusterPlan& plan) { return Others(plan); }),
      now_(now),
      counted_(self_.hello.grid.Count()),
      told_before_(options_.planner.half_life_seconds()),
      counted_since_(now),
      report_at_(now),
      planner_({.fingerprint = ModelText(self_.hello),
                .grid = self_.hello.grid,
                .first_layer = self_.first_layer,
                .experts_per_token = self_.experts_per_token,
                .expert_bytes = self_.expert_bytes,
                .row_bytes = self_.hello.width * sizeof(float),
                .experts_travel = self_.experts_travel},
               options_.planner) {
  if (leads_) planner_.Begin(now, plan());
  LookWhomToDial();
}

void NodeCore::OnMembers(const std::vector<std::string>& addresses) {
  members_ = addresses;
  LookWhomToDial();
}

// A peer that the store does not list any more stays one for as long as there is a link to it: it
// may be the store that forgets.
void NodeCore::LookWhomToDial() {
  for (const std::string& address : members_) {
    if (address == self_.hello.address || IsReached(address)) continue;
    if (!dialled_.insert(address).second) continue;
    actions_.push_back(node_action::Dial{address});
  }
  std::erase_if(dialled_, [this](const std::string& address) {
    if (std::ranges::find(members_, address) != members_.end()) return false;
    const bool is_here = std::ranges::any_of(peers_, [&](const auto& peer) {
      return peer.second.link != 0 && peer.second.hello.address == address;
    });
    if (!is_here) actions_.push_back(node_action::HangUp{address});
    return !is_here;
  });
}

void NodeCore::OnLeader(const std::optional<NodeLeader>& leader, Nanos now) {
  const bool is_other = leader && (!leader_ || leader->node != leader_->node);
  if (is_other) Say(fmt::format("node {} leads", leader->node));
  if (!leader && leader_) Say(fmt::format("node {} leads no more, and nobody else", leader_->node));
  leader_ = leader;
  const bool leads = leader && leader->self;
  if (leads) first_contact_.Settle();
  if (leads && !leads_) {
    planner_.Begin(now, plan());
    unwritten_ = 0;
    write_again_at_ = 0;
  }
  if (!leads && leads_) planner_.End();
  leads_ = leads;
  if (!is_other) return;
  report_at_ = 0;
  told_to_ = 0;
}

PeerHello NodeCore::Hello() const {
  PeerHello hello = self_.hello;
  hello.plan_epoch = newest_epoch_;
  return hello;
}

void NodeCore::Send(LinkId link, std::vector<std::byte> frame) {
  actions_.push_back(node_action::Send{.link = link, .frame = std::move(frame)});
}

void NodeCore::SendToPeers(const std::vector<std::byte>& frame) {
  for (const auto& [name, peer] : peers_) {
    if (peer.link != 0) Send(peer.link, frame);
  }
}

bool NodeCore::IsPeer(LinkId link) const {
  const auto found = links_.find(link);
  return found != links_.end() && found->second.hello.has_value();
}

std::vector<std::string> NodeCore::Peers() const {
  std::vector<std::string> names;
  for (const auto& [name, peer] : peers_) {
    if (peer.link != 0) names.push_back(name);
  }
  return names;
}

std::string NodeCore::LeaderName() const {
  if (leads_) return self_.hello.node;
  if (leader_) return leader_->node;
  for (const auto& [name, peer] : peers_) {
    if (peer.link != 0 && Leads(peer.hello)) return name;
  }
  return {};
}

void NodeCore::OnLinkOpened(LinkId link, const PeerIdentity& peer, Nanos) {
  links_[link] = {.peer = peer};
  Send(link, Encode(Hello()));
}

void NodeCore::Refuse(LinkId link, const PeerRefused& refused, Nanos now) {
  Say(refused.text);
  actions_.push_back(node_action::BreakLink{link, Encode(refused)});
  // It counts no more, however long its end takes.
  DropLink(link, ToString(refused.reason), now);
}

// It was listed before, or has peers, so it is not the one that is wrong: its lease ran out while
// it, or the store, was away, and somebody else was sooner.
void NodeCore::OnKeptOut(const std::string& why) {
  if (!was_listed_ && !first_contact_.settled()) {
    return Fail(why);
  }
  Say(fmt::format(
      "this node is not listed any more: {}; it serves on, and is listed again once that "
      "has gone",
      why));
}

// A newer build, or another processor, is no mistake: such a node serves its users alone.
void NodeCore::EndIfWrong(Refusal reason, const PeerHello& other) {
  const std::string cluster = self_.hello.cluster;
  std::string why;
  switch (reason) {
    case Refusal::kOtherCluster:
      why = fmt::format("node '{}' at {} is of cluster '{}', not '{}'", other.node, other.address,
                        other.cluster, cluster);
      break;
    case Refusal::kOtherModel:
      why = fmt::format("cluster '{}' serves another model: node '{}' at {} does", cluster,
                        other.node, other.address);
      break;
    case Refusal::kNameTaken:
      why = fmt::format("cluster '{}' has a node '{}' already, as node '{}' at {} says", cluster,
                        self_.hello.node, other.node, other.address);
      break;
    case Refusal::kOtherCertificate:
      why = fmt::format("node '{}' at {} says that this node's certificate is not of {}",
                        other.node, other.address, self_.hello.address);
      break;
    default:
      return;
  }
  // A store says by itself who is in the way, and waits for leases of the dead.
  if (!has_list() && reason != Refusal::kOtherCertificate) return;
  const bool stands = has_list() && other.plan_epoch > 0;
  if (first_contact_.EndsAt(Leads(other) || stands)) Fail(why);
}

void NodeCore::OnRefused(LinkId link, const PeerRefused& refused, Nanos now) {
  Say(fmt::format("refused by a peer: {}", refused.text));
  if (const auto& hello = links_[link].hello) EndIfWrong(refused.reason, *hello);
  actions_.push_back(node_action::BreakLink{link, {}});
  DropLink(link, "it refused this node", now);
}

std::string NodeCore::LeaderAddress() const {
  if (has_list()) return options_.addresses.front();
  return leader_ ? leader_->address : std::string();
}

void NodeCore::OnDistrusted(const std::string& address, std::string_view why) {
  const auto others = std::ranges::count_if(
      members_, [this](const std::string& one) { return one != self_.hello.address; });
  if (!first_contact_.EndsAtCertificate(address, address == LeaderAddress(),
                                        static_cast<std::size_t>(others))) {
    return;
  }
  if (SaysThatOwnIsExpired(why)) {  // though by the own clock, read at the start, it is valid
    return Fail(
        fmt::format("the node at {} finds this node's certificate expired: it, or one of both "
                    "clocks: {}",
                    address, why));
  }
  Fail(IsOfAnotherName(why)
           ? fmt::format("the certificate of the node at {} is not of that address: {}", address,
                         why)
           : fmt::format(
                 "this node and the one at {} have certificates of different authorities, or "
                 "that one's has expired: {}",
                 address, why));
}

std::optional<PeerRefused> NodeCore::ProblemOf(const Link& link, const PeerHello& hello) const {
  const PeerHello& own = self_.hello;
  const auto refused = [&](Refusal reason, std::string what) {
    return PeerRefused{.reason = reason,
                       .text = fmt::format("node {} at {}: {}", hello.node, hello.address, what)};
  };
  if (link.hello) return refused(Refusal::kBadMessage, "a second hello");
  if (link.peer.secure && !ProvesHostOf(link.peer, hello.address)) {
    return refused(Refusal::kOtherCertificate, "its certificate is not of that address");
  }
  if (hello.plan_epoch > kMostEpoch) return refused(Refusal::kBadMessage, "an epoch beyond any");
  if (hello.cluster != own.cluster) {
    return refused(Refusal::kOtherCluster,
                   fmt::format("of cluster {}, expected {}", hello.cluster, own.cluster));
  }
  if (hello.model != own.model || hello.grid != own.grid || hello.width != own.width ||
      hello.form != own.form) {
    return refused(Refusal::kOtherModel, "another model");
  }
  if (hello.arithmetic != own.arithmetic) {
    return refused(Refusal::kOtherArithmetic, "its kernels do not give the same bytes as these");
  }
  if (hello.node == own.node && hello.start_id != own.start_id) {
    return refused(Refusal::kNameTaken, "the name of another node");
  }
  if (IsAnothersStart(hello)) return refused(Refusal::kBadMessage, "the start id of another node");
  const auto known = peers_.find(hello.node);
  if (known != peers_.end() && known->second.link != 0 &&
      known->second.hello.start_id != hello.start_id &&
      known->second.hello.address != hello.address) {
    return refused(Refusal::kNameTaken,
                   fmt::format("the name of the node at {}", known->second.hello.address));
  }
  return ProblemOfName(hello);
}

std::optional<PeerRefused> NodeCore::ProblemOfName(const PeerHello& hello) const {
  if (peers_.contains(hello.node) || peers_.size() < kMostPeerNames) return std::nullopt;
  return PeerRefused{
      .reason = Refusal::kOther,
      .text = fmt::format("node {} at {}: node {} has met peers of {} names since "
                          "it started, and takes in no further one",
                          hello.node, hello.address, self_.hello.node, peers_.size())};
}

void NodeCore::OnHello(LinkId link, const PeerHello& hello, Nanos now) {
  Link& state = links_[link];
  if (const auto problem = ProblemOf(state, hello)) {
    const bool is_mutual = problem->reason == Refusal::kOtherCluster ||
                           problem->reason == Refusal::kOtherModel ||
                           hello.node == self_.hello.node;
    if (is_mutual) EndIfWrong(problem->reason, hello);
    return Refuse(link, *problem, now);
  }
  if (IsThrownOut(state, hello, now)) {
    return Refuse(link,
                  {.reason = Refusal::kWrongAnswer,
                   .text = fmt::format("node {} at {}: it has answered wrong rows, and is let in "
                                       "again by `troupe cluster readmit`",
                                       hello.node, hello.address)},
                  now);
  }
  if (hello.start_id == self_.hello.start_id) {  // this node has dialled itself
    actions_.push_back(node_action::CloseLink{link});
    return;
  }
  if (hello.plan_epoch <= kMostTellableEpoch) {
    newest_epoch_ = std::max(newest_epoch_, hello.plan_epoch);
  }
  state.hello = hello;
  state.pinged = now;
  Send(link, Encode(PeerPing{.token = link}));
}

// The first one says how far away the peer is: from then on it counts.
void NodeCore::OnPong(LinkId link, Nanos now) {
  Link& state = links_[link];
  if (state.round_trip || thrown_out_.Has(state.hello->start_id)) return;
  state.round_trip = static_cast<double>(now - state.pinged) * 1e-9;
  const PeerHello& hello = *state.hello;
  // Others may have come since its hello.
  if (const auto problem = ProblemOfName(hello)) return Refuse(link, *problem, now);
  first_contact_.Settle();
  Peer& peer = peers_[hello.node];
  const bool is_new_start = peer.hello.start_id != hello.start_id;
  // There is a link to it already; but it may have lost its own end of that one.
  if (peer.link != 0 && !is_new_start && !IsToBeKept(state)) return TellAll(link);
  if (peer.link != 0) actions_.push_back(node_action::PeerLeft{peer.link});
  if (is_new_start && peer.hello.start_id != 0) {
    earlier_.Add(peer.hello);
    accusers_.erase(peer.hello.start_id);
  }
  if (is_new_start) peer = {.held = ExpertBits(self_.hello.grid)};
  thrown_out_.TakeBack(hello.start_id);
  ForgetWordOf(hello.node);
  peer.hello = hello;
  CloseLinksOfOtherStarts(hello);
  if (is_new_start) SayIfNotListed(hello);
  TakeLink(hello.node, link);
}

// It may be new, or the lists have one address in different words: then nobody may lead.
void NodeCore::SayIfNotListed(const PeerHello& hello) {
  if (!has_list() ||
      std::ranges::find(options_.addresses, hello.address) != options_.addresses.end()) {
    return;
  }
  Say(fmt::format("node {} says that it is at {}, which is none of --peers here: {}", hello.node,
                  hello.address, fmt::join(options_.addresses, ", ")));
}

// What still comes by them is of a life that is over.
void NodeCore::CloseLinksOfOtherStarts(const PeerHello& hello) {
  std::erase_if(links_, [&](const auto& link) {
    const std::optional<PeerHello>& other = link.second.hello;
    if (!other || other->node != hello.node || other->start_id == hello.start_id) return false;
    actions_.push_back(node_action::CloseLink{link.first});
    return true;
  });
}

void NodeCore::TakeLink(const std::string& name, LinkId link) {
  Peer& peer = peers_[name];
  const bool was_here = std::exchange(peer.link, link) != 0;
  peer.linked = now_;
  actions_.push_back(node_action::PeerCame{.name = name,
                                           .link = link,
                                           .start = peer.hello.start_id,
                                           .round_trip_seconds = *links_[link].round_trip});
  // What it holds it has told by any link, and tells by this one only when it changes.
  actions_.push_back(node_action::PeerHolds{.link = link, .held = peer.held});
  if (!was_here) Say(fmt::format("node {} at {} is here", name, peer.hello.address));
  TellAll(link);
  if (Leads(peer.hello)) report_at_ = 0;  // it may know nothing of this node yet
}

void NodeCore::TellAll(LinkId link) {
  Send(link, Encode(follower_.Holdings()));
  for (const ThrownOut::Peer& peer : thrown_out_.peers()) {
    Send(link, Encode(AccusationOf(peer.said, peer.id)));
  }
  if (has_list() && leads_ && plan()) {
    Send(link, Encode(PeerPlanNotice{plan()->epoch, ToJson(*plan(), self_.hello.grid)}));
  }
}

void NodeCore::OnFrame(LinkId link, std::span<const std::byte> frame, Nanos now) {
  const auto found = links_.find(link);
  if (found == links_.end()) return;  // it was refused
  Result<PeerMessage> message = DecodePeerMessage(frame);
  if (!message.ok()) {
    const Refusal reason = message.status().code() == Code::kUnimplemented ? Refusal::kOtherWire
                                                                           : Refusal::kBadMessage;
    return Refuse(link, {.reason = reason, .text = message.status().message()}, now);
  }
  if (const auto* hello = std::get_if<PeerHello>(&*message)) return OnHello(link, *hello, now);
  if (const auto* refused = std::get_if<PeerRefused>(&*message)) {
    return OnRefused(link, *refused, now);
  }
  if (!found->second.hello) {
    return Refuse(link, {.reason = Refusal::kBadMessage, .text = "a message before the hello"},
                  now);
  }
  const std::string name = found->second.hello->node;
  if (const auto* ping = std::get_if<PeerPing>(&*message)) {
    return Send(link, Encode(PeerPong{.token = ping->token}));
  }
  if (std::get_if<PeerPong>(&*message) != nullptr) return OnPong(link, now);
  const auto peer = peers_.find(name);
  if (peer == peers_.end() || peer->second.link == 0 ||
      peer->second.hello.start_id != found->second.hello->start_id) {
    // It counts us among its peers before its own pong has come.
    if (!found->second.round_trip) OnPong(link, now);
  }
  if (const auto* holdings = std::get_if<PeerHoldings>(&*message)) {
    OnHoldings(name, *holdings);
  } else if (const auto* report = std::get_if<PeerReport>(&*message)) {
    OnReport(name, *report);
  } else if (const auto* notice = std::get_if<PeerPlanNotice>(&*message)) {
    OnPlanNotice(name, *notice);
  } else if (const auto* accusation = std::get_if<PeerAccusation>(&*message)) {
    OnAccusation(*found->second.hello, *accusation, now);
  }
}

}  // namespace troupe
