// What a node core makes of peers that answer wrong rows: those that this node has found out, and
// those that others say they have.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "cluster/node_core.h"
#include "cluster/wire/accusation.h"

namespace troupe {

void NodeCore::OnWrongAnswer(std::uint64_t start, ExpertId id, Nanos now) {
  if (!thrown_out_.emplace(start, id).second) return;
  if (leads_) planner_.OnCame(now);  // a plan without it
  const auto found = std::ranges::find_if(
      peers_, [start](const auto& entry) { return entry.second.hello.start_id == start; });
  if (found == peers_.end()) return;  // it has started anew meanwhile
  const PeerHello peer = found->second.hello;
  const PeerRefused refused{
      .reason = PeerRefused::Reason::kWrongAnswer,
      .text = fmt::format("node {} at {}: wrong rows of {}, thrown out until it starts anew",
                          peer.node, peer.address, ToString(id))};
  std::vector<LinkId> links;  // each of the two may have dialled the other
  for (auto& [link, state] : links_) {
    if (!state.hello || state.hello->start_id != peer.start_id) continue;
    state.round_trip.reset();  // it is not to be taken in place of the other
    links.push_back(link);
  }
  for (const LinkId link : links) Refuse(link, refused, now);
  SendToPeers(Encode(AccusationOf(start, id)));
}

// One that lies may accuse any, so each accuser has a peer looked at once and no more.
void NodeCore::OnAccusation(std::uint64_t accuser, const PeerAccusation& accusation, Nanos now) {
  const auto accused = std::ranges::find_if(peers_, [&](const auto& entry) {
    return entry.second.hello.start_id == accusation.accused && entry.second.link != 0;
  });
  const std::string what = ToString(ExpertId{accusation.layer, accusation.expert});
  const auto by = std::ranges::find_if(
      peers_, [&](const auto& entry) { return entry.second.hello.start_id == accuser; });
  if (by == peers_.end() || accused == peers_.end() || accuser == accusation.accused) return;
  if (!accusers_[accusation.accused].insert(accuser).second) return;
  Say(fmt::format(
      "node {} says that node {} answered wrong rows of {}: its next answers are checked",
      by->first, accused->first, what));
  actions_.push_back(node_action::Suspect{accusation.accused});
  if (leads_ && IsOutOfPlans(accusation.accused)) planner_.OnCame(now);
}

bool NodeCore::IsOutOfPlans(std::uint64_t start) const {
  if (thrown_out_.contains(start)) return true;
  const auto accusers = accusers_.find(start);
  if (accusers == accusers_.end()) return false;
  std::size_t others = 1, against = 0;  // this node has not found it out
  for (const auto& [name, peer] : peers_) {
    if (peer.link == 0 || peer.hello.start_id == start) continue;
    ++others;
    against += accusers->second.contains(peer.hello.start_id) ? 1 : 0;
  }
  return 2 * against > others;
}

}  // namespace troupe
