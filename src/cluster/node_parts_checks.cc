// What a node does about answers of peers that it computes again: whose rows were wrong is found
// out before anybody is thrown out.
#include <algorithm>
#include <utility>
#include <vector>

#include "cluster/node_parts.h"

namespace troupe {

void NodeParts::LookAtChecks(Nanos now) {
  if (forgetting_) ports_.engine.ForgetKept();
  if (checking_ == 0) {
    std::vector<SpotCheck> checks = ports_.calls.TakeChecks();
    checking_ = checks.size();
    for (SpotCheck& check : checks) ports_.engine.Check(std::move(check));
  }
  if (const auto opinion = second_opinion_.TakeDone(now)) TakeOpinion(*opinion, now);
}

void NodeParts::OnChecked(const SpotCheck& check, Result<SpotResult> result, Nanos now) {
  --checking_;
  if (!result.ok()) return;  // no slot, or the own disk fails: nothing is known of the peer
  using Found = SpotResult::Found;
  if (result->found == Found::kUnproven && AskAnother(check, std::move(result->own), now)) return;
  ++checks_.checked;
  switch (result->found) {
    case Found::kTrue:
      return;
    case Found::kOwnWrong:
      return SayOwnWrong(check.id);
    case Found::kPeerWrong:
      return ThrowOut(check, now);
    case Found::kUnproven:
      break;
  }
  if (second_opinion_.busy()) {
    ++checks_.undecided;
    return;
  }
  ports_.say(
      fmt::format("{}: a peer's rows are not this node's. Either may be wrong: this node's file "
                  "has no checksums, and nobody else holds it",
                  ToString(check.id)));
  ThrowOut(check, now);
}

// A third one that holds the expert.
bool NodeParts::AskAnother(const SpotCheck& check, std::vector<float> own, Nanos now) {
  const std::vector<PeerEntry> peers = ports_.directory.Entries();
  const auto other = std::ranges::find_if(peers, [&](const PeerEntry& peer) {
    return peer.link != 0 && peer.start != check.start && peer.held.Has(check.id);
  });
  return other != peers.end() && second_opinion_.Ask(check, std::move(own), other->link, now);
}

void NodeParts::TakeOpinion(const SecondOpinion::Outcome& opinion, Nanos now) {
  ++checks_.checked;
  switch (opinion.verdict) {
    case SecondOpinion::Verdict::kPeerWrong:
      return ThrowOut(opinion.check, now);
    case SecondOpinion::Verdict::kOwnWrong:
      return SayOwnWrong(opinion.check.id);
    case SecondOpinion::Verdict::kNone:
      ++checks_.undecided;
  }
}

void NodeParts::ThrowOut(const SpotCheck& check, Nanos now) {
  ++checks_.wrong;
  forgetting_ = true;
  core_.OnWrongAnswer(check.start, check.id, now);
  Perform(now);
}

void NodeParts::SayOwnWrong(ExpertId id) {
  ++checks_.own_wrong;
  if (!own_wrong_.insert(id).second) return;
  ports_.say(fmt::format(
      "{}: this node's own copy is wrong, not the peer's: the disk or the memory of this "
      "machine is bad",
      ToString(id)));
}

}  // namespace troupe
