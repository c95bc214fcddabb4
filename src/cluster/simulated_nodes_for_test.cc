#include "cluster/simulated_nodes_for_test.h"

namespace troupe {

SimulatedNodes::SimulatedNodes(const Shape& shape) : shape_(shape), rng_(shape.seed) {
  for (std::size_t i = 0; i < shape.nodes; ++i) {
    addresses_.push_back("node" + std::to_string(i) + ":7070");
  }
  time_.RunFor(kSecond);
  nodes_.resize(shape.nodes);
  for (std::size_t i = 0; i < shape.nodes; ++i) Start(i);
}

PeerHello SimulatedNodes::HelloOf(std::size_t i) const {
  return {.start_id = starts_,
          .model = {7, 8},
          .arithmetic = 9,
          .grid = kGrid,
          .width = 64,
          .form = RowForm::kInt8,
          .cluster = "lab",
          .node = "n" + std::to_string(i),
          .address = addresses_[i]};
}

std::vector<std::string> SimulatedNodes::ListOf(std::size_t i) const {
  if (shape_.has_store) return {};
  std::vector<std::string> list = addresses_;
  if (shape_.lists_differ) {
    std::rotate(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(i), list.end());
  }
  return list;
}

void SimulatedNodes::Start(std::size_t i, const std::function<void(PeerHello&)>& change) {
  ++starts_;
  PeerHello hello = HelloOf(i);
  if (change) change(hello);
  Node& node = nodes_[i];
  node.start = hello.start_id;
  node.held.assign(kGrid.Count(), 0);
  node.known.clear();
  node.core = std::make_unique<NodeCore>(
      NodeSelf{.hello = hello,
               .first_layer = 1,
               .experts_per_token = 2,
               .expert_bytes = 100,
               .most_held = node.most_held.value_or(shape_.most_held),
               .held = node.held},
      NodeOptions{.addresses = ListOf(i),
                  .new_model = shape_.new_model,
                  .planner = {.plan_every = 30 * kSecond, .copies = shape_.copies}},
      now());
  if (shape_.has_store) Join(i, hello);
  Perform(i);
}

void SimulatedNodes::Kill(std::size_t i) {
  for (const auto& [link, end] : std::map<LinkId, End>(links_)) {
    if (end.node == i) Cut(link);
  }
  Node& node = nodes_[i];
  if (node.store) node.store->Close();
  node.member.reset();
  node.core.reset();
  node.dials.clear();
  ++node.life;
}

void SimulatedNodes::Connect(std::size_t a, std::size_t b) {
  const LinkId one = ++last_link_, two = ++last_link_;
  links_[one] = {.node = a, .other = two};
  links_[two] = {.node = b, .other = one};
  for (const LinkId link : {one, two}) {
    const Nanos delay = Delay();
    arrives_[link] = now() + delay;  // no frame comes before the link
    After(delay, links_[link].node, [this, link](NodeCore& core) {
      if (links_.contains(link)) core.OnLinkOpened(link, {.address = {}, .names = {}}, now());
    });
  }
}

void SimulatedNodes::Cut(LinkId link) {
  const auto found = links_.find(link);
  if (found == links_.end()) return;
  const LinkId other = found->second.other;
  for (const LinkId end : {link, other}) {
    const std::size_t node = links_[end].node;
    links_.erase(end);
    After(Delay(), node, [this, end](NodeCore& core) { core.OnLinkClosed(end, "cut", now()); });
  }
}

void SimulatedNodes::Break(LinkId link, std::vector<std::byte> last) {
  if (last.empty()) return Cut(link);
  SendFrame(link, std::move(last));
  time_.After(5 * kSecond, [this, link] { Cut(link); });
}

void SimulatedNodes::CutAny() {
  if (links_.empty()) return;
  auto at = links_.begin();
  std::advance(at, static_cast<std::ptrdiff_t>(rng_.Below(links_.size())));
  Cut(at->first);
}

void SimulatedNodes::Mend() {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    for (const std::string& address : nodes_[i].dials) TryToReach(i, address);
  }
}

void SimulatedNodes::Run(Nanos time) {
  const Nanos until = now() + time;
  while (now() < until) {
    time_.RunFor(20 * kMs);
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (!nodes_[i].core) continue;
      if (nodes_[i].member && nodes_[i].member->next_tick() <= now()) {
        nodes_[i].member->Tick(now());
        TellNews(*nodes_[i].member, *nodes_[i].core, now());
      }
      nodes_[i].core->OnTime(now());
      Perform(i);
    }
  }
}

std::optional<std::size_t> SimulatedNodes::IndexOf(const std::string& name) const {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (name == "n" + std::to_string(i)) return i;
  }
  return std::nullopt;
}

void SimulatedNodes::After(Nanos delay, std::size_t node, std::function<void(NodeCore&)> what) {
  time_.After(delay, [this, node, life = nodes_[node].life, happens = std::move(what)] {
    if (!nodes_[node].core || nodes_[node].life != life) return;
    happens(*nodes_[node].core);
    Perform(node);
  });
}

void SimulatedNodes::Join(std::size_t i, const PeerHello& hello) {
  Node& node = nodes_[i];
  node.store = store_.Connect([this, i](const KvEvent& event) {
    nodes_[i].member->Told(event, now());
    TellNews(*nodes_[i].member, *nodes_[i].core, now());
    Perform(i);
  });
  node.member =
      std::make_unique<Membership>(MembershipOptions{.cluster = hello.cluster,
                                                     .node = hello.node,
                                                     .address = hello.address,
                                                     .model = std::to_string(hello.model[0]),
                                                     .start = std::to_string(hello.start_id)},
                                   *node.store, now());
}

bool SimulatedNodes::IsLinked(std::size_t a, std::size_t b) const {
  return std::ranges::any_of(links_, [&](const auto& link) {
    return link.second.node == a && links_.at(link.second.other).node == b;
  });
}

void SimulatedNodes::TryToReach(std::size_t i, const std::string& address) {
  const auto found = std::ranges::find(addresses_, address);
  const auto other = static_cast<std::size_t>(found - addresses_.begin());
  if (other < nodes_.size() && nodes_[i].core && nodes_[other].core && !IsLinked(i, other)) {
    Connect(i, other);
  }
}

void SimulatedNodes::Perform(std::size_t i) {
  Node& node = nodes_[i];
  for (NodeAction& action : node.core->TakeActions()) {
    if (auto* dial = std::get_if<node_action::Dial>(&action)) {
      node.dials.insert(dial->address);
      TryToReach(i, dial->address);
    } else if (auto* hang_up = std::get_if<node_action::HangUp>(&action)) {
      node.dials.erase(hang_up->address);
    } else if (auto* choose = std::get_if<node_action::Choose>(&action)) {
      After(Delay(), i, [this, job = std::move(choose->job)](NodeCore& core) {
        core.OnPlanChosen(ChoosePlan(job), now());
      });
    } else if (auto* fail = std::get_if<node_action::Fail>(&action)) {
      failed_.push_back(fail->why);
    } else if (auto* suspect = std::get_if<node_action::Suspect>(&action)) {
      if (on_suspect) on_suspect(i, suspect->start);
    } else if (auto* write = std::get_if<node_action::WritePlan>(&action)) {
      WritePlan(*node.member, *node.core, *write, now());
    } else if (auto* send = std::get_if<node_action::Send>(&action)) {
      SendFrame(send->link, std::move(send->frame));
    } else if (auto* close = std::get_if<node_action::CloseLink>(&action)) {
      Cut(close->link);
    } else if (auto* broken = std::get_if<node_action::BreakLink>(&action)) {
      Break(broken->link, std::move(broken->frame));
    } else if (auto* came = std::get_if<node_action::PeerCame>(&action)) {
      node.names[came->link] = came->name;
      node.known[came->name] = ExpertBits(kGrid);
    } else if (auto* holds = std::get_if<node_action::PeerHolds>(&action)) {
      node.known[node.names.at(holds->link)] = holds->held;
    } else if (auto* left = std::get_if<node_action::PeerLeft>(&action)) {
      node.known.erase(node.names.at(left->link));
    } else if (auto* carry = std::get_if<node_action::Carry>(&action)) {
      CarryOut(i, carry->step);
    } else {
      said_.push_back(std::get<node_action::Say>(action).text);
    }
  }
}

Nanos SimulatedNodes::ArrivalAfter(LinkId to) {
  Nanos& last = arrives_[to];
  last = std::max(last + 1, now() + Delay());
  return last - now();
}

void SimulatedNodes::SendFrame(LinkId link, std::vector<std::byte> frame) {
  const auto found = links_.find(link);
  if (found == links_.end()) return;
  const LinkId to = found->second.other;
  After(ArrivalAfter(to), links_[to].node, [this, to, frame = std::move(frame)](NodeCore& core) {
    if (links_.contains(to)) core.OnFrame(to, frame, now());
  });
}

void SimulatedNodes::CarryOut(std::size_t i, const HoldingStep& step) {
  const bool fails = rng_.Uniform() < step_fails;
  After(Delay(), i, [this, i, step, fails](NodeCore& core) {
    std::vector<std::uint8_t>& held = nodes_[i].held;
    if (const auto* release = std::get_if<ReleaseStep>(&step)) {
      held[kGrid.Index(release->id)] = 0;
    } else if (!fails) {
      const auto& hold = std::get<HoldStep>(step);
      for (const std::uint32_t expert : hold.experts) held[kGrid.Index({hold.layer, expert})] = 1;
    }
    core.OnHeld(held, std::holds_alternative<ReleaseStep>(step) || !fails);
  });
}

}  // namespace troupe
