#include "cluster/node_core.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "cluster/wire/holdings.h"
#include "cluster/wire/ping.h"
#include "cluster/wire/plan_notice.h"
#include "cluster/wire/report.h"

namespace troupe {
namespace {

using Refusal = PeerRefused::Reason;

bool Holds(const std::vector<std::uint8_t>& held, ExpertGrid grid, ExpertId id) {
  return held[grid.Index(id)] != 0;
}

}  // namespace

NodeCore::NodeCore(NodeSelf self, NodeOptions options, Nanos now)
    : self_(std::move(self)),
      options_(std::move(options)),
      leads_(Leads(self_.hello)),
      held_(self_.held),
      counted_(self_.hello.grid.Count()),
      counted_since_(now),
      report_at_(now),
      plan_at_(now + options_.gather) {
  TROUPE_CHECK(held_.size() == self_.hello.grid.Count());
}

PeerHello NodeCore::Hello() const {
  PeerHello hello = self_.hello;
  hello.plan_epoch = newest_epoch_;
  return hello;
}

PeerHoldings NodeCore::Holdings() const {
  PeerHoldings holdings{.epoch = plan_ ? plan_->epoch : 0,
                        .sequence = sequence_,
                        .held = ExpertBits(self_.hello.grid)};
  for (std::uint32_t layer = 0; layer < self_.hello.grid.layers; ++layer) {
    for (std::uint32_t expert = 0; expert < self_.hello.grid.experts; ++expert) {
      if (troupe::Holds(held_, self_.hello.grid, {layer, expert})) {
        holdings.held.Add({layer, expert});
      }
    }
  }
  return holdings;
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

void NodeCore::OnLinkOpened(LinkId link, Nanos) {
  links_[link] = {};
  Send(link, Encode(Hello()));
}

void NodeCore::Refuse(LinkId link, const PeerRefused& refused) {
  actions_.push_back(node_action::Say{refused.text});
  Send(link, Encode(refused));
  actions_.push_back(node_action::CloseLink{link});
}

std::optional<PeerRefused> NodeCore::ProblemOf(const PeerHello& hello) const {
  const PeerHello& own = self_.hello;
  const auto refused = [&](Refusal reason, std::string what) {
    return PeerRefused{.reason = reason,
                       .text = fmt::format("node {} at {}: {}", hello.node, hello.address, what)};
  };
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
  const auto known = peers_.find(hello.node);
  if (known != peers_.end() && known->second.link != 0 &&
      known->second.hello.start_id != hello.start_id &&
      known->second.hello.address != hello.address) {
    return refused(Refusal::kNameTaken,
                   fmt::format("the name of the node at {}", known->second.hello.address));
  }
  return std::nullopt;
}

void NodeCore::OnHello(LinkId link, const PeerHello& hello, Nanos now) {
  if (const auto problem = ProblemOf(hello)) return Refuse(link, *problem);
  if (hello.start_id == self_.hello.start_id) {  // this node has dialled itself
    actions_.push_back(node_action::CloseLink{link});
    return;
  }
  newest_epoch_ = std::max(newest_epoch_, hello.plan_epoch);
  Link& state = links_[link];
  state.hello = hello;
  state.pinged = now;
  Send(link, Encode(PeerPing{.token = link}));
}

// The first one says how far away the peer is: from then on it counts.
void NodeCore::OnPong(LinkId link, Nanos now) {
  Link& state = links_[link];
  if (state.round_trip) return;
  state.round_trip = static_cast<double>(now - state.pinged) * 1e-9;
  const PeerHello& hello = *state.hello;
  Peer& peer = peers_[hello.node];
  const bool is_new_start = peer.hello.start_id != hello.start_id;
  if (peer.link != 0 && !is_new_start) return;  // there is a link to it already
  if (peer.link != 0) actions_.push_back(node_action::PeerLeft{peer.link});
  if (is_new_start) peer = {};
  peer.hello = hello;
  TakeLink(hello.node, link);
}

void NodeCore::TakeLink(const std::string& name, LinkId link) {
  Peer& peer = peers_[name];
  peer.link = link;
  peer.held = ExpertBits(self_.hello.grid);
  peer.sequence = 0;
  actions_.push_back(node_action::PeerCame{
      .name = name, .link = link, .round_trip_seconds = *links_[link].round_trip});
  actions_.push_back(
      node_action::Say{fmt::format("node {} at {} is here", name, peer.hello.address)});
  Send(link, Encode(Holdings()));
  if (leads_ && plan_) Send(link, Encode(PeerPlanNotice{plan_->epoch, ToJson(*plan_)}));
  if (Leads(peer.hello)) report_at_ = 0;  // it knows nothing of this node yet
}

void NodeCore::OnLinkClosed(LinkId link, Nanos now) {
  links_.erase(link);
  for (auto& [name, peer] : peers_) {
    if (peer.link != link) continue;
    peer.link = 0;
    peer.seen = now;
    peer.held = ExpertBits();
    actions_.push_back(node_action::PeerLeft{link});
    // By another link, if there is one.
    for (const auto& [other, state] : links_) {
      if (state.hello && state.hello->node == name && state.round_trip) {
        TakeLink(name, other);
        return;
      }
    }
    actions_.push_back(node_action::Say{fmt::format("node {} is gone", name)});
  }
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
  const auto [entry, is_new] = told_.try_emplace(
      name, Told{.facts = {}, .activity = AgedActivity(options_.half_life_seconds)});
  Told& told = entry->second;
  plan_soon_ = plan_soon_ || is_new;
  told.facts.name = name;
  told.facts.most_held =
      static_cast<std::uint32_t>(report.expert_memory.count() / self_.expert_bytes);
  if (report.disk_bytes_per_second > 0) {
    told.facts.load_bytes_per_second = report.disk_bytes_per_second;
  }
  told.activity.Add(report.activations, report.seconds);
  const std::vector<double>& values = told.activity.values();
  const bool any = std::ranges::any_of(values, [](double value) { return value > 0; });
  told.facts.activations = any ? values : std::vector<double>();
}

void NodeCore::OnPlanNotice(const std::string& name, const PeerPlanNotice& notice) {
  const auto peer = peers_.find(name);
  if (leads_ || peer == peers_.end() || !Leads(peer->second.hello)) return;
  newest_epoch_ = std::max(newest_epoch_, notice.epoch);
  if (plan_ && notice.epoch <= plan_->epoch) return;
  Result<ClusterPlan> plan = ParseClusterPlan(notice.plan, self_.hello.grid);
  if (!plan.ok() || plan->epoch != notice.epoch) {
    actions_.push_back(node_action::Say{
        fmt::format("a plan of node {} cannot be read: {}", name, plan.status().message())});
    return;
  }
  Adopt(*std::move(plan));
}

void NodeCore::Adopt(ClusterPlan plan) {
  actions_.push_back(node_action::Say{
      fmt::format("plan {}: {} experts are to be held here", plan.epoch,
                  plan.Find(self_.hello.node) ? plan.Find(self_.hello.node)->count() : 0)});
  plan_ = std::move(plan);
  stuck_ = false;
  GoOn();
}

std::optional<HoldingStep> NodeCore::Step() const {
  const ClusterPlan::Node* const wanted = plan_ ? plan_->Find(self_.hello.node) : nullptr;
  if (wanted == nullptr) return std::nullopt;
  return NextStep(*wanted, {.grid = self_.hello.grid,
                            .held = held_,
                            .most_held = self_.most_held,
                            .held_elsewhere = [this](ExpertId id) {
                              return std::ranges::any_of(peers_, [id](const auto& entry) {
                                return entry.second.link != 0 && entry.second.held.Has(id);
                              });
                            }});
}

void NodeCore::GoOn() {
  if (carrying_ || stuck_) return;
  std::optional<HoldingStep> step = Step();
  if (!step) return;
  carrying_ = true;
  if (const auto* release = std::get_if<ReleaseStep>(&*step)) {
    // Peers must not ask for it any more.
    held_[self_.hello.grid.Index(release->id)] = 0;
    ++sequence_;
    SendToPeers(Encode(Holdings()));
  }
  actions_.push_back(node_action::Carry{*std::move(step)});
}

void NodeCore::OnHeld(std::vector<std::uint8_t> held, bool as_planned) {
  TROUPE_CHECK(held.size() == held_.size());
  carrying_ = false;
  stuck_ = !as_planned;
  if (held != held_) {
    held_ = std::move(held);
    ++sequence_;
    SendToPeers(Encode(Holdings()));
  }
  GoOn();
}

void NodeCore::OnActivity(std::vector<std::uint32_t> counts, Nanos) {
  for (std::size_t i = 0; i < counts.size(); ++i) counted_[i] += counts[i];
}

void NodeCore::SendReport(Nanos now) {
  PeerReport report{.seconds = static_cast<double>(now - counted_since_) * 1e-9,
                    .grid = self_.hello.grid,
                    .activations = counted_,
                    .expert_memory = Bytes(self_.most_held * self_.expert_bytes),
                    .links = {}};
  bool told = leads_;
  if (leads_) OnReport(self_.hello.node, report);
  for (const auto& [name, peer] : peers_) {
    if (leads_ || peer.link == 0 || !Leads(peer.hello)) continue;
    Send(peer.link, Encode(report));
    told = true;
  }
  if (!told) return;  // they are told to the leader when it comes back
  std::ranges::fill(counted_, 0);
  counted_since_ = now;
}

void NodeCore::Plan(Nanos now) {
  PlanFacts facts{.grid = self_.hello.grid,
                  .first_layer = self_.first_layer,
                  .experts_per_token = self_.experts_per_token,
                  .expert_bytes = self_.expert_bytes,
                  .nodes = {},
                  .link = {.latency_seconds = 1e-3, .bytes_per_second = 1e8}};
  double round_trips = 0;
  std::size_t trips = 0;
  for (const auto& [name, told] : told_) {
    const auto peer = peers_.find(name);
    const bool is_here =
        name == self_.hello.node || (peer != peers_.end() && peer->second.link != 0);
    if (!is_here && (peer == peers_.end() || now - peer->second.seen > options_.forget_after)) {
      continue;
    }
    facts.nodes.push_back(told.facts);
    if (peer == peers_.end() || peer->second.link == 0) continue;
    round_trips += *links_[peer->second.link].round_trip;
    ++trips;
  }
  if (trips > 0) facts.link.latency_seconds = round_trips / static_cast<double>(trips);
  const auto placer = MakePlacer(options_.placer, {});
  TROUPE_CHECK(placer.ok());  // checked before a node begins
  Result<ClusterPlan> plan = MakePlan(facts, **placer, newest_epoch_ + 1);
  if (!plan.ok()) {
    actions_.push_back(node_action::Say{fmt::format("no plan: {}", plan.status().message())});
    return;
  }
  if (plan_ && !PaysToAdopt(facts, *plan_, *plan, facts.link.latency_seconds)) return;
  newest_epoch_ = plan->epoch;
  SendToPeers(Encode(PeerPlanNotice{plan->epoch, ToJson(*plan)}));
  Adopt(*std::move(plan));
}

void NodeCore::OnTime(Nanos now) {
  if (now >= report_at_) {
    report_at_ = now + options_.report_every;
    SendReport(now);
  }
  if (!leads_) return;
  // The first plan as soon as all are known, and at last without those that do not come.
  const bool all_here = told_.size() >= options_.addresses.size();
  if (std::exchange(plan_soon_, false)) plan_at_ = std::min(plan_at_, now + options_.gather);
  if (now < plan_at_ && (plan_ || !all_here)) return;
  plan_at_ = now + options_.plan_every;
  Plan(now);
}

void NodeCore::OnFrame(LinkId link, std::span<const std::byte> frame, Nanos now) {
  const auto found = links_.find(link);
  if (found == links_.end()) return;  // it was refused
  Result<PeerMessage> message = DecodePeerMessage(frame);
  if (!message.ok()) {
    const Refusal reason = message.status().code() == Code::kUnimplemented ? Refusal::kOtherWire
                                                                           : Refusal::kBadMessage;
    return Refuse(link, {.reason = reason, .text = message.status().message()});
  }
  if (const auto* hello = std::get_if<PeerHello>(&*message)) return OnHello(link, *hello, now);
  if (const auto* refused = std::get_if<PeerRefused>(&*message)) {
    actions_.push_back(node_action::Say{fmt::format("refused by a peer: {}", refused->text)});
    actions_.push_back(node_action::CloseLink{link});
    return;
  }
  if (!found->second.hello) {
    return Refuse(link, {.reason = Refusal::kBadMessage, .text = "a message before the hello"});
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
