// Nodes of a cluster on a virtual clock: frames take as long as a seed says, links break, nodes die
// and come back, and so does the store that says who they are, where there is one. What their
// engines would do for a plan takes time and may fail. No socket, thread or model.
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
#include "cluster/member_news.h"
#include "cluster/members/fake_kv_network_for_test.h"
#include "cluster/node_core.h"

namespace troupe {

class SimulatedNodes {
 public:
  struct Shape {
    std::size_t nodes = 3;
    std::uint32_t most_held = 6;
    std::uint32_t copies = 1;
    std::uint64_t seed = 1;
    bool has_store = false;     // else the nodes are a list
    bool lists_differ = false;  // in their order
    bool new_model = false;     // as in NodeOptions
  };
  static constexpr ExpertGrid kGrid{.layers = 3, .experts = 6};
  static constexpr Nanos kMs = 1'000'000, kSecond = 1'000'000'000;

  explicit SimulatedNodes(const Shape& shape);

  PeerHello HelloOf(std::size_t i) const;

  // From its next start on.
  void set_most_held(std::size_t i, std::uint32_t most_held) { nodes_[i].most_held = most_held; }
  void set_copies(std::uint32_t copies) { shape_.copies = copies; }
  void set_new_model(bool new_model) { shape_.new_model = new_model; }

  void Start(std::size_t i, const std::function<void(PeerHello&)>& change = {});

  void Kill(std::size_t i);

  // Both ends hear of it, each in its time.
  void Connect(std::size_t a, std::size_t b);

  void Cut(LinkId link);
  // The peer hangs up when it has the last frame.
  void Break(LinkId link, std::vector<std::byte> last);
  void CutAny();
  // Who dials somebody and has no link to it gets one, as dialling again would.
  void Mend();

  void Run(Nanos time);

  // What others have of a node, or none.
  std::optional<std::size_t> IndexOf(const std::string& name) const;
  std::function<void(std::size_t i, std::uint64_t start)> on_suspect;  // whom node i checks

  std::uint64_t start(std::size_t i) const { return nodes_[i].start; }
  NodeCore* core(std::size_t i) { return nodes_[i].core.get(); }
  const std::vector<std::uint8_t>& held(std::size_t i) const { return nodes_[i].held; }
  // What node i believes of the others, by name.
  const std::map<std::string, ExpertBits>& known(std::size_t i) const { return nodes_[i].known; }
  const std::vector<std::string>& said() const { return said_; }
  // Nodes that would have ended, by their last lines.
  const std::vector<std::string>& failed() const { return failed_; }
  Nanos now() const { return time_.now(); }
  FakeKvNetwork& store() { return store_; }
  Rng& rng() { return rng_; }
  std::size_t size() const { return nodes_.size(); }
  double step_fails = 0;  // the share of steps that fail

 private:
  struct Node {
    std::unique_ptr<NodeCore> core;
    std::uint64_t life = 0;
    std::uint64_t start = 0;
    std::optional<std::uint32_t> most_held;
    std::vector<std::uint8_t> held;
    std::map<std::string, ExpertBits> known;
    std::map<LinkId, std::string> names;
    std::set<std::string> dials;
    std::shared_ptr<FakeKvLink> store;
    std::unique_ptr<Membership> member;
  };
  struct End {
    std::size_t node = 0;
    LinkId other = 0;
  };
  Nanos Delay() { return static_cast<Nanos>(1 + rng_.Below(80)) * kMs; }
  void After(Nanos delay, std::size_t node, std::function<void(NodeCore&)> what);

  std::vector<std::string> ListOf(std::size_t i) const;
  void Join(std::size_t i, const PeerHello& hello);

  bool IsLinked(std::size_t a, std::size_t b) const;
  void TryToReach(std::size_t i, const std::string& address);

  void Perform(std::size_t i);

  Nanos ArrivalAfter(LinkId to);

  // In order on each link, as a stream is.
  void SendFrame(LinkId link, std::vector<std::byte> frame);

  void CarryOut(std::size_t i, const HoldingStep& step);

  Shape shape_;
  Rng rng_;
  std::vector<std::string> addresses_;
  std::vector<Node> nodes_;
  std::map<LinkId, End> links_;
  std::map<LinkId, Nanos> arrives_;
  VirtualTime time_;
  FakeKvNetwork store_{time_, rng_};
  std::vector<std::string> said_, failed_;
  LinkId last_link_ = 0;
  std::uint64_t starts_ = 0;
};

}  // namespace troupe
