// Which peers there are now, what each of them holds, and how far away it is. Links' thread writes,
// the engine's thread takes copies when something has changed. Peers keep their number for as long
// as the program runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "cluster/calls/call_flow.h"
#include "cluster/transport/peer_links.h"
#include "cluster/wire/expert_bits.h"

namespace troupe {

struct PeerEntry {
  std::string name;
  LinkId link = 0;  // by which it is asked; 0: it is away
  std::uint64_t start = 0;
  double round_trip_seconds = 0;
  ExpertBits held;

  bool operator==(const PeerEntry&) const = default;
};

class PeerDirectory {
 public:
  // A peer has come, or comes by another link.
  PeerIndex OnCame(const std::string& name, LinkId link, std::uint64_t start,
                   double round_trip_seconds);
  void OnHoldings(LinkId link, const ExpertBits& held);
  // The link is gone. The peer, if it was asked by that link.
  std::optional<PeerIndex> OnGone(LinkId link);

  // Goes up with each change.
  std::uint64_t version() const;
  std::vector<PeerEntry> Entries() const;

 private:
  mutable Mutex mu_;
  std::uint64_t version_ TROUPE_GUARDED_BY(mu_) = 1;
  std::vector<PeerEntry> entries_ TROUPE_GUARDED_BY(mu_);
};

}  // namespace troupe
