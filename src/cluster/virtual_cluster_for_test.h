// A whole cluster in one process on a virtual clock, from a seed: nodes of live parts
// (virtual_node_for_test.h) that serve their users while everything goes wrong that a shape allows,
// and must be well again when it is over.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/virtual_node_for_test.h"
#include "cluster/virtual_rules_for_test.h"
#include "cluster/virtual_world_for_test.h"

namespace troupe {

// What a seed draws: how many nodes, of what memory, and which of the faults happen.
VirtualShape VirtualShapeOf(std::uint64_t seed, bool has_store);

class VirtualCluster {
 public:
  static constexpr Nanos kMs = 1'000'000, kSecond = 1'000'000'000;

  explicit VirtualCluster(const VirtualShape& shape);
  ~VirtualCluster();
  VirtualCluster(const VirtualCluster&) = delete;
  VirtualCluster& operator=(const VirtualCluster&) = delete;

  // The whole of it: it begins, things go wrong, and all is well again. The rule that was broken,
  // or nothing.
  std::string Live();

  void Run(Nanos time);
  void Start(std::size_t i);
  void Kill(std::size_t i, bool silently);
  void Hang(std::size_t i, Nanos time);
  void GoOn(std::size_t i);

  VirtualNode* node(std::size_t i) { return lives_[i].node.get(); }
  VirtualWorld& world() { return world_; }
  VirtualRules& rules() { return rules_; }

 private:
  struct Life {
    std::unique_ptr<VirtualNode> node;
    std::uint64_t number = 0;
    Nanos tick = 0;
    bool hangs = false;
    std::vector<std::function<void()>> late;  // what was due while it hung
  };

  void Call(std::size_t i, Nanos delay, std::function<void()> what);
  void Happen(std::size_t i, std::uint64_t number, const std::function<void()>& what);
  void TickLater(std::size_t i);
  std::size_t Any() { return world_.rng.Below(lives_.size()); }
  Nanos Span(std::uint64_t least_ms, std::uint64_t most_ms) {
    return static_cast<Nanos>(least_ms + world_.rng.Below(most_ms - least_ms)) * kMs;
  }
  // virtual_faults_for_test.cc.
  void Fault(VirtualFault fault);
  void FaultOfStore(VirtualFault fault, std::size_t i);
  void StopStore();
  void StopPath();
  void SlowPath();
  void KillFor(std::size_t i, bool silently, Nanos time);
  void EndFaults();
  bool Settle();
  void Probe();
  void CountEvents(VirtualNode& node);
  void CountEvents();

  VirtualWorld world_;
  VirtualRules rules_;
  std::vector<std::string> addresses_;
  std::vector<Life> lives_;
  std::vector<Nanos> clocks_from_;
  std::vector<double> clocks_speed_;
  std::uint64_t starts_ = 0;
  std::optional<FakeKvState> backup_;
  Nanos store_back_at_ = 0;
};

}  // namespace troupe
