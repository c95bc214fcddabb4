// The placement problem as a value: a model's experts by layer and size, servers with devices,
// links between servers, and how often each server's users activate each expert. What every
// placement (placer.h), the migration (migration.h) and the simulator (src/sim) take; pure data, no
// I/O. src/sim/problem_json.h has its JSON form. Design: docs/design/placement.md.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "expert/expert_id.h"

namespace troupe {

// Experts of all layers in one row: layer 0's first. Layers here are MoE layers, counted from 0.
using ExpertIndex = std::uint32_t;

class ExpertTable {
 public:
  ExpertTable() = default;
  // bytes[layer][expert].
  explicit ExpertTable(const std::vector<std::vector<Bytes>>& bytes);
  static ExpertTable Equal(std::uint32_t layers, std::uint32_t experts, Bytes each);

  std::uint32_t layers() const { return static_cast<std::uint32_t>(first_.size()) - 1; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(bytes_.size()); }
  ExpertIndex FirstOf(std::uint32_t layer) const { return first_[layer]; }
  std::uint32_t CountIn(std::uint32_t layer) const { return first_[layer + 1] - first_[layer]; }
  std::uint32_t LayerOf(ExpertIndex e) const { return layer_of_[e]; }
  ExpertId Id(ExpertIndex e) const { return {layer_of_[e], e - first_[layer_of_[e]]}; }
  std::uint64_t BytesOf(ExpertIndex e) const { return bytes_[e]; }
  std::uint64_t total_bytes() const { return total_; }
  // The size of every expert, if they all have the same.
  std::optional<std::uint64_t> equal_bytes() const { return equal_; }

  bool operator==(const ExpertTable&) const = default;

 private:
  std::vector<ExpertIndex> first_ = {0};  // and one past the last layer
  std::vector<std::uint32_t> layer_of_;
  std::vector<std::uint64_t> bytes_;
  std::uint64_t total_ = 0;
  std::optional<std::uint64_t> equal_;
};

struct PlacementDevice {
  std::uint64_t memory = 0;          // bytes for experts, without what else needs memory
  double speed = 1;                  // of computing; the estimator's figures are for speed 1
  double load_bytes_per_second = 0;  // speed of loading an expert into its memory (Eq. 3)

  bool operator==(const PlacementDevice&) const = default;
};

struct PlacementServer {
  std::string name;
  std::vector<PlacementDevice> devices;
  std::vector<double> activations;  // f_n(e), by ExpertIndex: how often its own users activate e

  double speed() const;          // of all devices together
  std::uint64_t memory() const;  // M_n of Algorithm 1
  bool operator==(const PlacementServer&) const = default;
};

struct Link {
  double latency_seconds = 0;
  double bytes_per_second = 0;

  bool operator==(const Link&) const = default;
};

// One link for all pairs, and others for those that are named; each direction for itself.
struct LinkTable {
  Link usual;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Link> pairs;  // by (from, to)

  const Link& Between(std::uint32_t from, std::uint32_t to) const;
  bool operator==(const LinkTable&) const = default;
};

struct PlacementProblem {
  ExpertTable experts;
  std::uint32_t experts_per_token = 1;  // top-k
  std::vector<PlacementServer> servers;
  LinkTable links;

  std::uint32_t server_count() const { return static_cast<std::uint32_t>(servers.size()); }
  std::span<const double> Activations(std::uint32_t server, std::uint32_t layer) const;
  // Experts of the one size that fit on a server; only when sizes are equal.
  std::uint64_t SlotsOf(std::uint32_t server) const;

  bool operator==(const PlacementProblem&) const = default;
};

// Says what is wrong: shapes that disagree, invalid numbers, an expert that fits on no device, less
// memory than the experts need. With unequal sizes a problem may pass and still have
// no placement (packing is hard); then the placers say so.
Status Validate(const PlacementProblem& problem);

}  // namespace troupe
