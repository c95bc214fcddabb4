// What a node core makes of peers that answer wrong rows: those that this node has found out, and
// those that others say they have.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "cluster/node_core.h"
#include "cluster/wire/accusation.h"

namespace troupe {
namespace {

// A peer that is told of before it has met that life looks for nothing, so it is told again.
constexpr Nanos kTellAgainAfter = 1'000'000'000;

}  // namespace

// The check was done on its own time: the peer may have started anew since, at another port too, or
// be away.
void NodeCore::OnWrongAnswer(std::uint64_t start, ExpertId id, Nanos now) {
  if (thrown_out_.Has(start)) return;
  if (leads_) planner_.OnCame(now);  // a plan without it
  const std::optional<PeerHello> life = LifeOf(start);
  if (!life || thrown_out_.HasAddress(life->address)) return;
  const auto peer = peers_.find(life->node);
  const bool is_known = peer != peers_.end() && peer->second.hello.address == life->address;
  const std::uint64_t last = is_known ? peer->second.hello.start_id : start;
  thrown_out_.Add({.start = last,
                   .node = life->node,
                   .address = life->address,
                   .id = id,
                   .said = last,
                   .told = {}});
  const PeerRefused refused{
      .reason = PeerRefused::Reason::kWrongAnswer,
      .text = fmt::format("node {} at {}: wrong rows of {}, thrown out until `troupe cluster "
                          "readmit` lets it in again",
                          life->node, life->address, ToString(id))};
  std::vector<LinkId> links;  // each of the two may have dialled the other
  for (auto& [link, state] : links_) {
    if (!state.hello) continue;
    ThrownOut::Peer* const found = thrown_out_.Find(*state.hello, state.peer);
    if (found == nullptr) continue;
    found->start = found->said = state.hello->start_id;
    state.round_trip.reset();  // it is not to be taken in place of the other
    links.push_back(link);
  }
  for (const LinkId link : links) Refuse(link, refused, now);
  SendToPeers(Encode(AccusationOf(thrown_out_.peers().back().said, id)));
}

std::optional<PeerHello> NodeCore::LifeOf(std::uint64_t start) const {
  for (const auto& [name, peer] : peers_) {
    if (peer.hello.start_id == start) return peer.hello;
  }
  return earlier_.Find(start);
}

// By the word of one that lies, perhaps: so only others look at that life, and it stays as it was
// for this node.
bool NodeCore::IsThrownOut(const Link& link, const PeerHello& hello, Nanos now) {
  ThrownOut::Peer* const peer = thrown_out_.Find(hello, link.peer);
  if (peer == nullptr) return false;
  if (peer->told && now - *peer->told < kTellAgainAfter) return true;
  peer->said = hello.start_id;
  peer->told = now;
  SendToPeers(Encode(AccusationOf(peer->said, peer->id)));
  return true;
}

// It is told to all, so a peer may say another one's. Away or not: what is found out of a start
// must be of one node.
bool NodeCore::IsAnothersStart(const PeerHello& hello) const {
  const auto is_anothers = [&hello](const PeerHello& other) {
    return other.start_id == hello.start_id &&
           (other.node != hello.node || other.address != hello.address);
  };
  return is_anothers(self_.hello) ||
         std::ranges::any_of(peers_,
                             [&](const auto& entry) { return is_anothers(entry.second.hello); }) ||
         std::ranges::any_of(links_, [&](const auto& entry) {
           return entry.second.hello && is_anothers(*entry.second.hello);
         });
}

std::size_t NodeCore::Readmit(Nanos now) {
  std::size_t count = thrown_out_.peers().size();
  for (const ThrownOut::Peer& peer : thrown_out_.peers()) {
    Say(fmt::format("node {} at {} is let in again", peer.node, peer.address));
  }
  for (const auto& [name, peer] : peers_) {
    if (thrown_out_.Has(peer.hello.start_id) || !accusers_.contains(peer.hello.start_id)) continue;
    ++count;
    Say(fmt::format("what others have said of node {} counts no more", name));
  }
  thrown_out_.Clear();
  accusers_.clear();
  earlier_.Clear();
  if (leads_ && count > 0) planner_.OnCame(now);
  return count;
}

void NodeCore::ForgetWordOf(const std::string& accuser) {
  for (auto& [accused, accusers] : accusers_) {
    if (const auto by = accusers.find(accuser); by != accusers.end()) by->second = false;
  }
}

// One that lies may accuse any, so each accuser has a peer looked at once and no more, however
// often it starts anew.
void NodeCore::OnAccusation(const PeerHello& accuser, const PeerAccusation& accusation, Nanos now) {
  const auto accused = std::ranges::find_if(peers_, [&](const auto& entry) {
    return entry.second.hello.start_id == accusation.accused && entry.second.link != 0;
  });
  const std::string what = ToString(ExpertId{accusation.layer, accusation.expert});
  const auto by = peers_.find(accuser.node);
  if (by == peers_.end() || by->second.hello.start_id != accuser.start_id) return;
  if (accused == peers_.end() || accused == by) return;
  const auto [word, is_first] = accusers_[accusation.accused].try_emplace(accuser.node);
  if (std::exchange(word->second, true)) return;
  if (leads_ && IsOutOfPlans(accusation.accused)) planner_.OnCame(now);
  if (!is_first) return;
  Say(fmt::format(
      "node {} says that node {} answered wrong rows of {}: its next answers are checked",
      by->first, accused->first, what));
  actions_.push_back(node_action::Suspect{accusation.accused});
}

bool NodeCore::IsOutOfPlans(std::uint64_t start) const {
  if (thrown_out_.Has(start)) return true;
  const auto accusers = accusers_.find(start);
  if (accusers == accusers_.end()) return false;
  std::size_t others = 1, against = 0;  // this node has not found it out
  for (const auto& [name, peer] : peers_) {
    if (peer.link == 0 || peer.hello.start_id == start) continue;
    ++others;
    const auto word = accusers->second.find(name);
    against += word != accusers->second.end() && word->second ? 1 : 0;
  }
  return 2 * against > others;
}

}  // namespace troupe
