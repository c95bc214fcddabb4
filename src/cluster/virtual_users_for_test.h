// What a node's users have it compute: one layer after the other, as a pass asks for it. What is
// held is computed; what is not is asked of peers by the live calls (peer_calls.h), or read from a
// disk that may fail. Every row that a layer is given is looked at.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "cluster/peer_calls.h"
#include "cluster/virtual_world_for_test.h"

namespace troupe {

class VirtualNode;

class VirtualUsers {
 public:
  VirtualUsers(VirtualWorld& world, VirtualNode& node) : world_(world), node_(node) {}

  // A layer, unless one is under way. `ask`: what peers hold is asked of them, and nothing read.
  void AskLayer(bool ask);
  // Takes what has come.
  void Go();

  bool waits() const { return !wanted_.empty(); }
  Nanos since() const { return since_; }  // the layer under way began
  std::uint64_t given() const { return given_; }
  std::uint64_t given_by_peers() const { return given_by_peers_; }

 private:
  ExpertBatch Batch() const;
  std::vector<float> Computed(std::uint32_t expert, float factor) const;
  void Want(bool ask);
  void Load(std::uint32_t expert);
  void Loaded(std::uint32_t expert);
  void Give(std::uint32_t expert, std::span<const float> rows);
  void EndIfDone();

  VirtualWorld& world_;
  VirtualNode& node_;
  std::uint64_t layers_ = 0;  // begun
  std::uint32_t layer_ = 0;
  std::vector<float> values_;
  std::vector<std::uint32_t> rows_, first_row_;
  std::vector<ExpertDemand> demands_;
  std::set<std::uint32_t> wanted_;   // and not had yet
  std::set<std::uint32_t> loading_;  // of them
  Nanos since_ = 0;
  std::uint64_t given_ = 0, given_by_peers_ = 0;
};

}  // namespace troupe
