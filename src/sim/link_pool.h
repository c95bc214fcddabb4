// The links of a simulation: one for each sender, and maybe one for each receiver, or one for each
// pair of servers between which something is under way. Pairs that are idle take no memory, so ten
// thousand servers have no hundred million links.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "placement/latency_model.h"
#include "placement/problem.h"
#include "sim/shared_link.h"

namespace troupe {

class LinkPool {
 public:
  // `ingress`: what a server gets shares a link, too, as fast as that of what it sends. Only with
  // kEgress.
  LinkPool(const LinkTable& table, LinkSharing sharing, std::uint32_t servers, bool ingress = false)
      : table_(table), sharing_(sharing), servers_(servers), ingress_(ingress) {
    if (sharing != LinkSharing::kEgress) return;
    for (std::uint32_t n = 0; n < (ingress ? 2 : 1) * servers; ++n) {
      slots_.push_back({.link = SharedLink(table.usual.bytes_per_second)});
    }
  }

  // The link that a transfer takes. An id is valid while something is under way on it.
  std::uint32_t Acquire(std::uint32_t from, std::uint32_t to) {
    if (sharing_ == LinkSharing::kEgress) return from;
    const std::uint64_t key = (std::uint64_t{from} << 32) | to;
    if (const auto found = by_pair_.find(key); found != by_pair_.end()) return found->second;
    std::uint32_t slot = 0;
    const double bandwidth = table_.Between(from, to).bytes_per_second;
    if (free_.empty()) {
      slot = static_cast<std::uint32_t>(slots_.size());
      slots_.push_back({.link = SharedLink(bandwidth)});
    } else {
      slot = free_.back();
      free_.pop_back();
      slots_[slot].link.SetBandwidth(bandwidth);
    }
    slots_[slot].pair = key;
    by_pair_.emplace(key, slot);
    return slot;
  }
  // The second link that it takes at the same time, if there is one.
  std::optional<std::uint32_t> AcquireIngress(std::uint32_t to) const {
    if (!ingress_) return std::nullopt;
    return servers_ + to;
  }
  SharedLink& operator[](std::uint32_t id) { return slots_[id].link; }
  // After a transfer ended.
  void ReleaseIfIdle(std::uint32_t id) {
    if (sharing_ == LinkSharing::kEgress || !slots_[id].link.idle()) return;
    by_pair_.erase(slots_[id].pair);
    free_.push_back(id);
  }
  // As many as were in use at once, at most.
  std::size_t size() const { return slots_.size(); }
  double Latency(std::uint32_t from, std::uint32_t to) const {
    return table_.Between(from, to).latency_seconds;
  }

 private:
  struct Slot {
    SharedLink link;
    std::uint64_t pair = 0;
  };

  const LinkTable& table_;
  LinkSharing sharing_;
  std::uint32_t servers_;
  bool ingress_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  std::unordered_map<std::uint64_t, std::uint32_t> by_pair_;
};

}  // namespace troupe
