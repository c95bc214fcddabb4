// Peers that this node has thrown out, since they answered wrong rows. Each is known again when it
// starts anew: by its address, and by its name too if its certificate is of the same host, or if
// there are no certificates. Only an operator lets it in again. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "cluster/face/peer_address.h"
#include "cluster/transport/peer_identity.h"
#include "cluster/wire/hello.h"
#include "expert/expert_id.h"

namespace troupe {

// Whether its certificate is of the host of that address.
inline bool ProvesHostOf(const PeerIdentity& peer, std::string_view address) {
  const Result<PeerAddress> parsed = ParsePeerAddress(address);
  return parsed.ok() && parsed->IsNamed(peer.names);
}

class ThrownOut {
 public:
  struct Peer {
    std::uint64_t start = 0;  // of its last life that was a peer
    std::string node, address;
    ExpertId id;                // of which it had wrong rows
    std::uint64_t said = 0;     // the start of the life that knocked last, by its own word
    std::optional<Nanos> told;  // when others were told of that
  };

  bool Has(std::uint64_t start) const {
    return std::ranges::find(peers_, start, &Peer::start) != peers_.end();
  }
  bool HasAddress(std::string_view address) const {
    return std::ranges::find(peers_, address, &Peer::address) != peers_.end();
  }
  void Add(Peer peer) { peers_.push_back(std::move(peer)); }
  // One that says hello is one of them. A certificate proves hosts and no port, so there a name
  // that comes back from the same host counts, and no other's.
  Peer* Find(const PeerHello& hello, const PeerIdentity& by) {
    const auto found = std::ranges::find_if(peers_, [&](const Peer& peer) {
      return peer.address == hello.address ||
             (peer.node == hello.node && (!by.secure || ProvesHostOf(by, peer.address)));
    });
    return found == peers_.end() ? nullptr : &*found;
  }
  // That start is another one's, whoever said that it was its own.
  void TakeBack(std::uint64_t start) {
    for (Peer& peer : peers_) {
      if (peer.said == start) peer.said = peer.start;
    }
  }
  const std::vector<Peer>& peers() const { return peers_; }
  void Clear() { peers_.clear(); }

 private:
  std::vector<Peer> peers_;
};

}  // namespace troupe
