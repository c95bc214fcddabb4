// What a node core does where it and a peer have dialled each other: both take the same one of the
// two links, and who has dialled the other one hangs up, and dials again once that is lost.
#include <algorithm>
#include <cstddef>
#include <string>

#include "cluster/node_core.h"

namespace troupe {
namespace {

// What is under way on a link that is not used any more is over by then.
constexpr Nanos kSpareAfter = 5'000'000'000;

}  // namespace

// That which the one with the first name has dialled: both ends know that.
bool NodeCore::IsToBeKept(const Link& link) const {
  const bool is_first = self_.hello.node < link.hello->node;
  return link.peer.dialled == is_first;
}

// By a link that the peer has dialled and that is kept.
bool NodeCore::IsReached(const std::string& address) const {
  return std::ranges::any_of(peers_, [&](const auto& entry) {
    const Peer& peer = entry.second;
    if (peer.link == 0 || peer.hello.address != address) return false;
    const auto link = links_.find(peer.link);
    return link != links_.end() && !link->second.peer.dialled && IsToBeKept(link->second) &&
           now_ - peer.linked >= kSpareAfter;
  });
}

void NodeCore::KeepOneLinkEach() {
  std::erase_if(dialled_, [this](const std::string& address) {
    if (!IsReached(address)) return false;
    links_spared_ += std::ranges::any_of(links_, [&](const auto& link) {
      return link.second.peer.dialled && link.second.hello && link.second.hello->address == address;
    });
    actions_.push_back(node_action::HangUp{address});
    return true;
  });
}

void NodeCore::CountIfSpared(LinkId link) {
  const auto closed = links_.find(link);
  if (closed == links_.end() || !closed->second.hello) return;
  const auto peer = peers_.find(closed->second.hello->node);
  const bool has_another = peer != peers_.end() && peer->second.link != 0 &&
                           peer->second.link != link && links_.contains(peer->second.link);
  if (has_another && !closed->second.peer.dialled && !IsToBeKept(closed->second)) {
    ++links_spared_by_peers_;
  }
}

void NodeCore::OnLinkClosed(LinkId link, std::string_view why, Nanos now) {
  CountIfSpared(link);
  DropLink(link, why, now);
}

void NodeCore::DropLink(LinkId link, std::string_view why, Nanos now) {
  links_.erase(link);
  for (auto& [name, peer] : peers_) {
    if (peer.link != link) continue;
    peer.link = 0;
    peer.seen = now;
    actions_.push_back(node_action::PeerLeft{link});
    // By another link, if there is one.
    for (const auto& [other, state] : links_) {
      if (state.hello && state.hello->node == name && state.round_trip) {
        TakeLink(name, other);
        return;
      }
    }
    Say(fmt::format("node {} is gone: {}", name, why));
    if (leads_) planner_.OnGone(now);
  }
  LookWhomToDial();
}

std::size_t NodeCore::links() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      links_, [](const auto& link) { return link.second.round_trip.has_value(); }));
}

}  // namespace troupe
