// What a node tells the leader, from which the next plan is made: what its users activate, what its
// memory, disk and processor can do, and the links to its peers as it measures them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "cluster/wire/expert_bits.h"

namespace troupe {

// Finite and not below zero; zero where nothing was measured yet.
struct NodeMeasures {
  struct Link {
    std::string peer;
    double round_trip_seconds = 0;
    double bytes_per_second = 0;

    bool operator==(const Link&) const = default;
  };

  double disk_bytes_per_second = 0;
  double seconds_an_expert = 0;
  double seconds_a_row = 0;
  // A row that a peer computes takes so much longer than one at home, on average.
  double seconds_a_remote_row = 0;
  std::vector<Link> links;

  bool operator==(const NodeMeasures&) const = default;
};

struct PeerReport {
  double seconds = 0;  // that the activations cover
  ExpertGrid grid;
  std::vector<std::uint32_t> activations;  // by grid.Index(expert)
  Bytes expert_memory;
  NodeMeasures measured;

  bool operator==(const PeerReport&) const = default;
};

std::string ToString(const PeerReport& report);
std::vector<std::byte> Encode(const PeerReport& report);
Result<PeerReport> DecodePeerReport(std::span<const std::byte> frame);

}  // namespace troupe
