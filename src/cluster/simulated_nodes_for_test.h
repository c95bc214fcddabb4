// Nodes of a cluster on a virtual clock: frames take as long as a seed says, links break, nodes die
// and come back. What their engines would do for a plan takes time and may fail. No socket, thread
// or model.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/rng.h"
#include "cluster/node_core.h"

namespace troupe {

class SimulatedNodes {
 public:
  struct Shape {
    std::size_t nodes = 3;
    std::uint32_t most_held = 6;
    std::uint64_t seed = 1;
  };
  static constexpr ExpertGrid kGrid{.layers = 3, .experts = 6};
  static constexpr Nanos kMs = 1'000'000, kSecond = 1'000'000'000;

  explicit SimulatedNodes(const Shape& shape) : shape_(shape), rng_(shape.seed) {
    for (std::size_t i = 0; i < shape.nodes; ++i) {
      addresses_.push_back("node" + std::to_string(i) + ":7070");
    }
    nodes_.resize(shape.nodes);
    for (std::size_t i = 0; i < shape.nodes; ++i) Start(i);
  }

  PeerHello HelloOf(std::size_t i) const {
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

  void Start(std::size_t i, const std::function<void(PeerHello&)>& change = {}) {
    ++starts_;
    PeerHello hello = HelloOf(i);
    if (change) change(hello);
    Node& node = nodes_[i];
    node.held.assign(kGrid.Count(), 0);
    node.known.clear();
    node.core = std::make_unique<NodeCore>(
        NodeSelf{.hello = hello,
                 .first_layer = 1,
                 .experts_per_token = 2,
                 .expert_bytes = 100,
                 .most_held = shape_.most_held,
                 .held = node.held},
        NodeOptions{.addresses = addresses_, .plan_every = 30 * kSecond}, now_);
    for (std::size_t other = 0; other < nodes_.size(); ++other) {
      if (other != i && nodes_[other].core) Connect(i, other);
    }
  }

  void Kill(std::size_t i) {
    for (const auto& [link, end] : std::map<LinkId, End>(links_)) {
      if (end.node == i) Cut(link);
    }
    nodes_[i].core.reset();
    ++nodes_[i].life;
  }

  // Both ends hear of it, each in its time.
  void Connect(std::size_t a, std::size_t b) {
    const LinkId one = ++last_link_, two = ++last_link_;
    links_[one] = {.node = a, .other = two};
    links_[two] = {.node = b, .other = one};
    for (const LinkId link : {one, two}) {
      const Nanos delay = Delay();
      arrives_[link] = now_ + delay;  // no frame comes before the link
      After(delay, links_[link].node, [this, link](NodeCore& core) {
        if (links_.contains(link)) core.OnLinkOpened(link, now_);
      });
    }
  }

  void Cut(LinkId link) {
    const auto found = links_.find(link);
    if (found == links_.end()) return;
    const LinkId other = found->second.other;
    for (const LinkId end : {link, other}) {
      const std::size_t node = links_[end].node;
      links_.erase(end);
      After(Delay(), node, [this, end](NodeCore& core) { core.OnLinkClosed(end, now_); });
    }
  }
  void CutAny() {
    if (links_.empty()) return;
    auto at = links_.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(rng_.Below(links_.size())));
    Cut(at->first);
  }
  // Every pair without a link gets one, as dialling again would.
  void Mend() {
    std::set<std::pair<std::size_t, std::size_t>> there;
    for (const auto& [link, end] : links_) {
      there.insert(std::minmax(end.node, links_[end.other].node));
    }
    for (std::size_t a = 0; a < nodes_.size(); ++a) {
      for (std::size_t b = a + 1; b < nodes_.size(); ++b) {
        if (nodes_[a].core && nodes_[b].core && !there.contains({a, b})) Connect(a, b);
      }
    }
  }

  void Run(Nanos time) {
    const Nanos until = now_ + time;
    while (now_ < until) {
      while (!events_.empty() && events_.begin()->first <= now_) {
        auto event = events_.extract(events_.begin());
        Happen(event.mapped());
      }
      for (std::size_t i = 0; i < nodes_.size(); ++i) {
        if (!nodes_[i].core) continue;
        nodes_[i].core->OnTime(now_);
        Perform(i);
      }
      now_ += 20 * kMs;
    }
  }

  NodeCore* core(std::size_t i) { return nodes_[i].core.get(); }
  const std::vector<std::uint8_t>& held(std::size_t i) const { return nodes_[i].held; }
  // What node i believes of the others, by name.
  const std::map<std::string, ExpertBits>& known(std::size_t i) const { return nodes_[i].known; }
  const std::vector<std::string>& said() const { return said_; }
  Nanos now() const { return now_; }
  Rng& rng() { return rng_; }
  std::size_t size() const { return nodes_.size(); }
  double step_fails = 0;  // the share of steps that fail

 private:
  struct Node {
    std::unique_ptr<NodeCore> core;
    std::uint64_t life = 0;
    std::vector<std::uint8_t> held;
    std::map<std::string, ExpertBits> known;
    std::map<LinkId, std::string> names;
  };
  struct End {
    std::size_t node = 0;
    LinkId other = 0;
  };
  struct Event {
    std::size_t node = 0;
    std::uint64_t life = 0;
    std::function<void(NodeCore&)> what;
  };

  Nanos Delay() { return static_cast<Nanos>(1 + rng_.Below(80)) * kMs; }
  void After(Nanos delay, std::size_t node, std::function<void(NodeCore&)> what) {
    events_.emplace(now_ + delay, Event{node, nodes_[node].life, std::move(what)});
  }
  void Happen(Event& event) {
    Node& node = nodes_[event.node];
    if (!node.core || node.life != event.life) return;
    event.what(*node.core);
    Perform(event.node);
  }

  void Perform(std::size_t i) {
    Node& node = nodes_[i];
    for (NodeAction& action : node.core->TakeActions()) {
      if (auto* send = std::get_if<node_action::Send>(&action)) {
        SendFrame(send->link, std::move(send->frame));
      } else if (auto* close = std::get_if<node_action::CloseLink>(&action)) {
        Cut(close->link);
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

  // In order on each link, as a stream is.
  void SendFrame(LinkId link, std::vector<std::byte> frame) {
    const auto found = links_.find(link);
    if (found == links_.end()) return;
    const LinkId to = found->second.other;
    Nanos& last = arrives_[to];
    last = std::max(last + 1, now_ + Delay());
    After(last - now_, links_[to].node, [this, to, frame = std::move(frame)](NodeCore& core) {
      if (links_.contains(to)) core.OnFrame(to, frame, now_);
    });
  }

  void CarryOut(std::size_t i, const HoldingStep& step) {
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

  const Shape shape_;
  Rng rng_;
  std::vector<std::string> addresses_;
  std::vector<Node> nodes_;
  std::map<LinkId, End> links_;
  std::map<LinkId, Nanos> arrives_;
  std::multimap<Nanos, Event> events_;
  std::vector<std::string> said_;
  LinkId last_link_ = 0;
  std::uint64_t starts_ = 0;
  Nanos now_ = kSecond;
};

}  // namespace troupe
