#include "cluster/node_core.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "cluster/wire/holdings.h"
#include "cluster/wire/ping.h"
#include "cluster/wire/plan_notice.h"
#include "cluster/wire/report.h"

namespace troupe {
namespace {

using Refusal = PeerRefused::Reason;

// A peer that tells of more would leave no epoch to the plans to come: theirs are one more each.
constexpr std::uint64_t kMostTold = std::uint64_t{1} << 52, kMostEpoch = 2 * kMostTold;

bool IsNamed(std::string_view address, const std::vector<std::string>& names) {
  const Result<PeerAddress> parsed = ParsePeerAddress(address);
  return parsed.ok() && parsed->IsNamed(names);
}

}  // namespace

NodeCore::NodeCore(NodeSelf self, NodeOptions options, Nanos now)
    : self_(std::move(self)),
      options_(std::move(options)),
      members_(options_.addresses),
      leads_(has_list() && Leads(self_.hello)),
      follower_({.node = self_.hello.node,
                 .grid = self_.hello.grid,
                 .most_held = self_.most_held,
                 .held = self_.held},
                [this](ExpertId id) { return IsHeldElsewhere(id); }),
      counted_(self_.hello.grid.Count()),
      told_before_(options_.planner.half_life_seconds),
      counted_since_(now),
      report_at_(now),
      planner_({.grid = self_.hello.grid,
                .first_layer = self_.first_layer,
                .experts_per_token = self_.experts_per_token,
                .expert_bytes = self_.expert_bytes,
                .row_bytes = self_.hello.width * sizeof(float)},
               options_.planner) {
  if (leads_) planner_.Begin(now, /*has_plan=*/false);
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
    if (address == self_.hello.address || !dialled_.insert(address).second) continue;
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
  if (is_other) actions_.push_back(node_action::Say{fmt::format("node {} leads", leader->node)});
  leader_ = leader;
  const bool leads = leader && leader->self;
  if (leads && !leads_) planner_.Begin(now, plan().has_value());
  if (!leads && leads_) planner_.End();
  leads_ = leads;
  if (!is_other) return;
  report_at_ = 0;
  told_to_ = 0;
}

void NodeCore::OnPlan(std::uint64_t epoch, std::string_view plan) {
  TakePlan(epoch, plan, "the store");
}

void NodeCore::OnPlanWanted(bool wanted, Nanos now) {
  wanted_ = wanted;
  if (wanted) planner_.OnCame(now);
}

void NodeCore::OnPlanWritten(const Status& outcome) {
  writing_ = false;
  if (!outcome.ok()) actions_.push_back(node_action::Say{std::string(outcome.message())});
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

void NodeCore::OnLinkOpened(LinkId link, std::vector<std::string> names, Nanos) {
  links_[link] = {.names = std::move(names)};
  Send(link, Encode(Hello()));
}

void NodeCore::Refuse(LinkId link, const PeerRefused& refused, Nanos now) {
  actions_.push_back(node_action::Say{refused.text});
  actions_.push_back(node_action::BreakLink{link, Encode(refused)});
  OnLinkClosed(link, now);  // it counts no more, however long its end takes
}

std::optional<PeerRefused> NodeCore::ProblemOf(const Link& link, const PeerHello& hello) const {
  const PeerHello& own = self_.hello;
  const auto refused = [&](Refusal reason, std::string what) {
    return PeerRefused{.reason = reason,
                       .text = fmt::format("node {} at {}: {}", hello.node, hello.address, what)};
  };
  if (link.hello) return refused(Refusal::kBadMessage, "a second hello");
  if (!link.names.empty() && !IsNamed(hello.address, link.names)) {
    return refused(Refusal::kNameTaken, "its certificate is not of that address");
  }
  if (hello.plan_epoch > kMostTold) return refused(Refusal::kBadMessage, "an epoch beyond any");
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
  if (thrown_out_.contains(hello.start_id)) {
    return refused(Refusal::kWrongAnswer, "it has answered wrong rows");
  }
  if (hello.node == own.node && hello.start_id != own.start_id) {
    return refused(Refusal::kNameTaken, "the name of another node");
  }
  const auto known = peers_.find(hello.node);
  if (known != peers_.end() && known->second.link != 0 &&
      known->second.hello.start_id != hello.start_id &&
      known->second.hello.address != hello.address) {
    return refused(Refusal::kNameTaken,
                   fmt::format("the name of the node at {}", known->second.hello.address));
  }
  return std::nullopt;
}

void NodeCore::OnWrongAnswer(std::uint64_t start, std::string_view what, Nanos now) {
  thrown_out_.insert(start);
  const auto found = std::ranges::find_if(
      peers_, [start](const auto& entry) { return entry.second.hello.start_id == start; });
  if (found == peers_.end()) return;  // it has started anew meanwhile
  const PeerHello peer = found->second.hello;
  const PeerRefused refused{
      .reason = Refusal::kWrongAnswer,
      .text = fmt::format("node {} at {}: wrong rows of {}, thrown out until it starts anew",
                          peer.node, peer.address, what)};
  std::vector<LinkId> links;  // each of the two may have dialled the other
  for (auto& [id, state] : links_) {
    if (!state.hello || state.hello->start_id != peer.start_id) continue;
    state.round_trip.reset();  // it is not to be taken in place of the other
    links.push_back(id);
  }
  for (const LinkId id : links) Refuse(id, refused, now);
}

void NodeCore::OnHello(LinkId link, const PeerHello& hello, Nanos now) {
  Link& state = links_[link];
  if (const auto problem = ProblemOf(state, hello)) return Refuse(link, *problem, now);
  if (hello.start_id == self_.hello.start_id) {  // this node has dialled itself
    actions_.push_back(node_action::CloseLink{link});
    return;
  }
  newest_epoch_ = std::max(newest_epoch_, hello.plan_epoch);
  state.hello = hello;
  state.pinged = now;
  Send(link, Encode(PeerPing{.token = link}));
}

// The first one says how far away the peer is: from then on it counts.
void NodeCore::OnPong(LinkId link, Nanos now) {
  Link& state = links_[link];
  if (state.round_trip || thrown_out_.contains(state.hello->start_id)) return;
  state.round_trip = static_cast<double>(now - state.pinged) * 1e-9;
  const PeerHello& hello = *state.hello;
  Peer& peer = peers_[hello.node];
  const bool is_new_start = peer.hello.start_id != hello.start_id;
  // There is a link to it already; but it may have lost its own end of that one.
  if (peer.link != 0 && !is_new_start) return TellAll(link);
  if (peer.link != 0) actions_.push_back(node_action::PeerLeft{peer.link});
  if (is_new_start) peer = {.held = ExpertBits(self_.hello.grid)};
  peer.hello = hello;
  TakeLink(hello.node, link);
}

void NodeCore::TakeLink(const std::string& name, LinkId link) {
  Peer& peer = peers_[name];
  peer.link = link;
  actions_.push_back(node_action::PeerCame{.name = name,
                                           .link = link,
                                           .start = peer.hello.start_id,
                                           .round_trip_seconds = *links_[link].round_trip});
  // What it holds it has told by any link, and tells by this one only when it changes.
  actions_.push_back(node_action::PeerHolds{.link = link, .held = peer.held});
  actions_.push_back(
      node_action::Say{fmt::format("node {} at {} is here", name, peer.hello.address)});
  TellAll(link);
  if (Leads(peer.hello)) report_at_ = 0;  // it may know nothing of this node yet
}

void NodeCore::TellAll(LinkId link) {
  Send(link, Encode(follower_.Holdings()));
  if (has_list() && leads_ && plan()) {
    Send(link, Encode(PeerPlanNotice{plan()->epoch, ToJson(*plan())}));
  }
}

void NodeCore::OnLinkClosed(LinkId link, Nanos now) {
  links_.erase(link);
  for (auto& [name, peer] : peers_) {
    if (peer.link != link) continue;
    peer.link = 0;
    peer.seen = now;
    actions_.push_back(node_action::PeerLeft{link});
    // By another link, if there is one.
    for (const auto& [other, state] : links_) {
      if (state.hello && state.hello->node == name && state.round_trip) {
        TakeLink(name, other);
        return;
      }
    }
    actions_.push_back(node_action::Say{fmt::format("node {} is gone", name)});
    if (leads_) planner_.OnGone(now);
  }
  LookWhomToDial();
}

void NodeCore::OnHoldings(const std::string& name, const PeerHoldings& holdings) {
  Peer& peer = peers_[name];
  if (holdings.held.grid() != self_.hello.grid || holdings.sequence < peer.sequence) return;
  peer.sequence = holdings.sequence;
  peer.held = holdings.held;
  actions_.push_back(node_action::PeerHolds{.link = peer.link, .held = holdings.held});
  GoOn();
}

void NodeCore::OnReport(const std::string& name, const PeerReport& report) {
  if (!leads_ || report.grid != self_.hello.grid) return;
  planner_.OnReport(name, report);
}

void NodeCore::OnPlanNotice(const std::string& name, const PeerPlanNotice& notice) {
  const auto peer = peers_.find(name);
  if (!has_list() || leads_ || peer == peers_.end() || !Leads(peer->second.hello)) return;
  if (notice.epoch <= kMostEpoch) TakePlan(notice.epoch, notice.plan, name);
}

void NodeCore::TakePlan(std::uint64_t epoch, std::string_view text, std::string_view from) {
  newest_epoch_ = std::max(newest_epoch_, epoch);
  if (plan() && epoch <= plan()->epoch) return;
  Result<ClusterPlan> plan = ParseClusterPlan(text, self_.hello.grid, epoch);
  if (!plan.ok()) {
    actions_.push_back(node_action::Say{
        fmt::format("plan {} of {} cannot be read: {}", epoch, from, plan.status().message())});
    return;
  }
  Adopt(*std::move(plan));
}

void NodeCore::Adopt(ClusterPlan plan) {
  actions_.push_back(node_action::Say{
      fmt::format("plan {}: {} experts are to be held here", plan.epoch,
                  plan.Find(self_.hello.node) ? plan.Find(self_.hello.node)->count() : 0)});
  follower_.Adopt(std::move(plan));
  GoOn();
}

bool NodeCore::IsHeldElsewhere(ExpertId id) const {
  return std::ranges::any_of(peers_, [id](const auto& entry) {
    return entry.second.link != 0 && entry.second.held.Has(id);
  });
}

void NodeCore::Drain() {
  if (follower_.draining()) return;
  follower_.Drain();
  actions_.push_back(node_action::Say{"what is held here goes to other nodes"});
  report_at_ = 0;
}

bool NodeCore::PlanNow(Nanos now) {
  if (leads_) planner_.PlanNow(now);
  return leads_;
}

void NodeCore::GoOn() {
  std::optional<HoldingStep> step = follower_.TakeStep();
  TellHoldings();
  if (step) actions_.push_back(node_action::Carry{*std::move(step)});
}

void NodeCore::TellHoldings() {
  if (told_sequence_ == follower_.sequence()) return;
  told_sequence_ = follower_.sequence();
  SendToPeers(Encode(follower_.Holdings()));
}

void NodeCore::OnHeld(std::vector<std::uint8_t> held, bool as_planned) {
  follower_.OnHeld(std::move(held), as_planned);
  TellHoldings();
  GoOn();
}

void NodeCore::OnActivity(std::vector<std::uint32_t> counts, Nanos) {
  for (std::size_t i = 0; i < counts.size(); ++i) counted_[i] += counts[i];
}

void NodeCore::SendReport(Nanos now) {
  const auto leader = std::ranges::find_if(peers_, [this](const auto& peer) {
    return peer.second.link != 0 && Leads(peer.second.hello);
  });
  if (!leads_ && leader == peers_.end()) return;  // it is told when there is one again
  const std::uint64_t start = leads_ ? self_.hello.start_id : leader->second.hello.start_id;
  if (std::exchange(told_to_, start) != start) AddWhatWasTold();
  const PeerReport report{
      .seconds = static_cast<double>(now - counted_since_) * 1e-9,
      .grid = self_.hello.grid,
      .activations = counted_,
      .expert_memory = Bytes(follower_.draining() ? 0 : self_.most_held * self_.expert_bytes),
      .measured = measured_};
  leads_ ? OnReport(self_.hello.node, report) : Send(leader->second.link, Encode(report));
  told_before_.Add(counted_, report.seconds);
  std::ranges::fill(counted_, 0);
  counted_since_ = now;
}

// A leader that has just begun knows nothing of what users activated before.
void NodeCore::AddWhatWasTold() {
  const std::vector<double>& before = told_before_.values();
  for (std::size_t i = 0; i < before.size(); ++i) {
    counted_[i] += static_cast<std::uint32_t>(std::lround(before[i]));
  }
  told_before_ = AgedActivity(options_.planner.half_life_seconds);
}

void NodeCore::Plan(Nanos now) {
  std::vector<Planner::Present> present = {{.name = self_.hello.node, .round_trip_seconds = {}}};
  for (const auto& [name, peer] : peers_) {
    if (peer.link == 0 && planner_.Forgets(now - peer.seen)) continue;
    Planner::Present& node = present.emplace_back(Planner::Present{.name = name});
    if (peer.link != 0) node.round_trip_seconds = links_[peer.link].round_trip;
  }
  std::ranges::sort(present, {}, &Planner::Present::name);
  Result<std::optional<ClusterPlan>> plan =
      planner_.Plan(present, follower_.plan(), newest_epoch_ + 1);
  if (!plan.ok()) {
    actions_.push_back(node_action::Say{fmt::format("no plan: {}", plan.status().message())});
    planner_.TryAgain(now);
    return;
  }
  if (!*plan && wanted_) *plan = follower_.plan();
  if (!*plan) return;
  if (!has_list()) {
    writing_ = true;
    actions_.push_back(node_action::WritePlan{ToJson(**plan)});
    return;
  }
  newest_epoch_ = (*plan)->epoch;
  SendToPeers(Encode(PeerPlanNotice{(*plan)->epoch, ToJson(**plan)}));
  Adopt(**std::move(plan));
}

void NodeCore::OnTime(Nanos now) {
  if (follower_.OnTime(now)) GoOn();
  if (now >= report_at_) {
    report_at_ = now + options_.report_every;
    SendReport(now);
  }
  if (!leads_ || writing_) return;
  if (planner_.IsDue(now, members_.size(), plan().has_value())) Plan(now);
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
    actions_.push_back(node_action::Say{fmt::format("refused by a peer: {}", refused->text)});
    actions_.push_back(node_action::BreakLink{link, {}});
    return OnLinkClosed(link, now);
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
  if (!peers_.contains(name) || peers_[name].link == 0) {
    // It counts us among its peers before its own pong has come.
    if (!found->second.round_trip) OnPong(link, now);
  }
  if (const auto* holdings = std::get_if<PeerHoldings>(&*message)) {
    OnHoldings(name, *holdings);
  } else if (const auto* report = std::get_if<PeerReport>(&*message)) {
    OnReport(name, *report);
  } else if (const auto* notice = std::get_if<PeerPlanNotice>(&*message)) {
    OnPlanNotice(name, *notice);
  }
}

}  // namespace troupe
