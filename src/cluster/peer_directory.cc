#include "cluster/peer_directory.h"

#include <algorithm>

namespace troupe {

PeerIndex PeerDirectory::OnCame(const std::string& name, LinkId link, std::uint64_t start,
                                double round_trip_seconds) {
  const MutexLock lock(mu_);
  ++version_;
  auto found = std::ranges::find(entries_, name, &PeerEntry::name);
  if (found == entries_.end()) {
    found = entries_.insert(found, {.name = name, .held = ExpertBits()});
  }
  found->link = link;
  found->start = start;
  found->round_trip_seconds = round_trip_seconds;
  return static_cast<PeerIndex>(found - entries_.begin());
}

void PeerDirectory::OnHoldings(LinkId link, const ExpertBits& held) {
  const MutexLock lock(mu_);
  const auto found = std::ranges::find(entries_, link, &PeerEntry::link);
  if (found == entries_.end()) return;
  ++version_;
  found->held = held;
}

std::optional<PeerIndex> PeerDirectory::OnGone(LinkId link) {
  const MutexLock lock(mu_);
  const auto found = std::ranges::find(entries_, link, &PeerEntry::link);
  if (found == entries_.end()) return std::nullopt;
  ++version_;
  found->link = 0;
  found->held = ExpertBits();
  return static_cast<PeerIndex>(found - entries_.begin());
}

std::uint64_t PeerDirectory::version() const {
  const MutexLock lock(mu_);
  return version_;
}

std::vector<PeerEntry> PeerDirectory::Entries() const {
  const MutexLock lock(mu_);
  return entries_;
}

}  // namespace troupe
