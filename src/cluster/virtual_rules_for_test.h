// What must hold in a virtual cluster, whatever goes wrong: looked at with each thing that a node
// does. docs/design/cluster.md has the rules, and what excuses what.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cluster/virtual_world_for_test.h"
#include "model/expert_source.h"

namespace troupe {

class VirtualNode;

class VirtualRules {
 public:
  using NodeAt = std::function<VirtualNode*(std::size_t node)>;  // null: it is dead

  VirtualRules(VirtualWorld& world, NodeAt node);

  // What a liar says in place of that.
  static float Lie(float right) { return -right; }

  void OnStep(VirtualNode& node);
  void OnGiven(VirtualNode& node, ExpertId id, bool wanted, const ExpertBatch& batch,
               std::span<const float> rows);
  void OnHolds(VirtualNode& node, ExpertId id);
  // Whether all memories may be without it if the node lets it go now.
  bool MayBeGone(VirtualNode& node, ExpertId id) const;
  // `might`: it was so when the node decided that.
  void OnReleased(VirtualNode& node, ExpertId id, bool might);
  void OnThrownOut(VirtualNode& by, std::size_t accused);
  void OnKilled(VirtualNode& node);
  void OnRestored() { restored_ = true; }

  // Why not all that live are well now, or nothing: they know each other and carry out one plan
  // that has them all and every expert for which there is room, each knows what the others hold,
  // and nothing is under way.
  std::optional<std::string> WhyNotWell() const;
  // Why somebody still waits.
  std::optional<std::string> WhyNotAtRest() const;

  // The first rule that was broken; empty: none was.
  const std::string& broken() const { return broken_; }
  void Break(const std::string& what);

 private:
  void OnPut(const FakeKvState& state, const KvPut& put);
  std::vector<VirtualNode*> Living() const;
  std::optional<std::string> WhyNotWell(VirtualNode& node) const;

  VirtualWorld& world_;
  const NodeAt node_;
  bool restored_ = false;
  std::map<std::uint64_t, std::uint64_t> epoch_of_;                       // by start
  std::map<std::uint64_t, std::pair<std::string, std::string>> plan_of_;  // by epoch: who, what
  std::map<ExpertId, Nanos> died_;                                        // a holder did
  std::map<std::string, Nanos> died_bad_;  // a node, after it had lied or its memory had rotted
  std::set<std::pair<std::uint64_t, std::size_t>> out_;  // by which start, which node
  std::string broken_;
};

}  // namespace troupe
