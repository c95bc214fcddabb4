// What the nodes of a virtual cluster share: the clock, the dice, the network, the store, a small
// model whose experts are a few bytes each, and the timeline of what happened.
#pragma once

#include <fmt/core.h>

#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "cluster/members/fake_kv_network_for_test.h"
#include "cluster/virtual_network_for_test.h"
#include "expert/expert_grid.h"
#include "model/expert_layout.h"
#include "store/container_format.h"

namespace troupe {

// What may go wrong in a run. A seed draws some of them.
enum class VirtualFault {
  kCut,           // a link breaks
  kStop,          // a path carries nothing, in one direction
  kSlow,          // a path is slow
  kTight,         // little may wait to be sent
  kKill,          // a node dies, and starts again
  kPowerLoss,     // so, and its system tells nobody
  kHang,          // a node stops, and goes on with its old timers
  kClocks,        // nodes' clocks differ by hours, and run at other speeds
  kBadDisk,       // reads fail, or are slow
  kDrain,         // a node is to go
  kStoreAway,     // the store is away
  kStoreCut,      // for one node
  kStoreLoses,    // the store's answers
  kStoreRestore,  // an old state of the store comes back
  kStoreCompact,  // the store forgets its history
  kLiar,          // a node answers wrong rows
  kRot,           // an expert is damaged in a node's memory, or on its disk
  kCount
};

class VirtualModel {
 public:
  static constexpr ExpertGrid kGrid{.layers = 3, .experts = 6};
  static constexpr std::uint32_t kFirstLayer = 1;
  static constexpr std::uint32_t kWidth = 8;

  VirtualModel() : layouts_(kGrid.layers) {
    for (std::uint32_t layer = kFirstLayer; layer < kGrid.layers; ++layer) {
      for (std::size_t m = 0; m < 3; ++m) {
        ExpertMatrix& matrix = layouts_[layer].matrices[m];
        matrix = {.tensor = &tensor_, .type = TensorType::kF32, .rows = 1, .cols = 1};
        matrix.slot_offset = m * matrix.SlotBytes();
      }
      for (std::uint32_t expert = 0; expert < kGrid.experts; ++expert) {
        const ExpertId id{layer, expert};
        Rng rng(100 * layer + expert);
        std::vector<std::byte>& bytes = bytes_[id];
        bytes.resize(layouts_[layer].SlotBytes());
        for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng.Below(256));
        checksums_[id] = ContainerChecksum(bytes);
        factors_[id] = FactorOf(layouts_[layer].At(bytes.data()));
      }
    }
  }
  VirtualModel(const VirtualModel&) = delete;
  VirtualModel& operator=(const VirtualModel&) = delete;

  const ExpertLayouts& layouts() const { return layouts_; }
  const std::vector<std::byte>& BytesOf(ExpertId id) const { return bytes_.at(id); }
  std::uint64_t ChecksumOf(ExpertId id) const { return checksums_.at(id); }

  // An expert multiplies each value by a factor that depends on every byte of its weights.
  static float FactorOf(const Mlp& weights) {
    std::uint32_t sum = 7;
    for (const PanelMatrix* matrix : {&weights.gate, &weights.up, &weights.down}) {
      for (std::size_t i = 0; i < PanelBytes(matrix->type, 1, 1); ++i) {
        sum = sum * 31 + std::to_integer<std::uint32_t>(matrix->data[i]);
      }
    }
    return static_cast<float>(1 + sum % 9973);
  }
  float FactorOf(ExpertId id) const { return factors_.at(id); }

 private:
  TensorInfo tensor_;
  ExpertLayouts layouts_;
  std::map<ExpertId, std::vector<std::byte>> bytes_;
  std::map<ExpertId, std::uint64_t> checksums_;
  std::map<ExpertId, float> factors_;
};

struct VirtualShape {
  std::size_t nodes = 3;
  std::uint32_t most_held = 5;
  std::uint32_t copies = 1;
  std::uint64_t seed = 1;
  bool has_store = false;  // else the nodes are a list
  bool packed = true;      // the model has checksums
  double verify = 0;
  std::set<VirtualFault> faults = {};
  bool keeps_lines = false;  // of the timeline, to be read
};

// What happened in many runs: they are of use only if they reach these.
struct VirtualEvents {
  std::map<std::string, std::uint64_t> counts;
  void Count(const std::string& what, std::uint64_t times = 1) { counts[what] += times; }
};

class VirtualTimeline {
 public:
  explicit VirtualTimeline(bool keeps) : keeps_(keeps) {}

  template <typename... Args>
  void Add(Nanos now, fmt::format_string<Args...> format, Args&&... args) {
    if (!keeps_) return;
    text_ += fmt::format("{:10.4f} ", static_cast<double>(now) * 1e-9);
    text_ += fmt::format(format, std::forward<Args>(args)...) + "\n";
  }
  bool keeps() const { return keeps_; }
  const std::string& text() const { return text_; }

 private:
  const bool keeps_;
  std::string text_;
};

class VirtualRules;

struct VirtualWorld {
  explicit VirtualWorld(const VirtualShape& of)
      : shape(of), rng(of.seed), timeline(of.keeps_lines) {}
  VirtualWorld(const VirtualWorld&) = delete;
  VirtualWorld& operator=(const VirtualWorld&) = delete;

  bool Has(VirtualFault fault) const { return shape.faults.contains(fault); }
  static const VirtualModel& model() {
    static const VirtualModel model;
    return model;
  }

  const VirtualShape shape;
  Rng rng;
  VirtualTime time;
  VirtualTimeline timeline;
  FakeKvNetwork store{time, rng};
  VirtualNetwork::Do call;
  std::unique_ptr<VirtualNetwork> network;
  VirtualRules* rules = nullptr;
  VirtualEvents events;
};

}  // namespace troupe
