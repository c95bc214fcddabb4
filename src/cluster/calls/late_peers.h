// Which peers have become late again and again, and which are in time again: to be said once each.
// Pure.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>

#include "base/clock.h"
#include "cluster/calls/call_flow.h"

namespace troupe {

class LatePeers {
 public:
  // Whether it is news that the peer is late.
  bool OnLate(PeerIndex peer, Nanos now) {
    Peer& one = peers_[peer];
    one.lates = one.lates * Kept(now - one.at) + 1;
    one.at = now;
    if (one.told || one.lates < kTooMany) return false;
    return one.told = true;
  }
  // Whether it is news that the peer is not late any more.
  bool OnInTime(PeerIndex peer, Nanos now) {
    const auto found = peers_.find(peer);
    if (found == peers_.end() || !found->second.told) return false;
    if (found->second.lates * Kept(now - found->second.at) > kFew) return false;
    found->second.told = false;
    return true;
  }

 private:
  static constexpr double kTooMany = 5, kFew = 0.5;  // of the last seconds
  static double Kept(Nanos time) {
    constexpr double kHalfLife = 5e9;
    return std::exp2(-static_cast<double>(time) / kHalfLife);
  }
  struct Peer {
    double lates = 0;
    Nanos at = 0;
    bool told = false;
  };
  std::map<PeerIndex, Peer> peers_;
};

}  // namespace troupe
