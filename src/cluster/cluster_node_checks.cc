// What a node does about answers of peers that it computes again: whose rows were wrong is found
// out before anybody is thrown out.
#include <algorithm>
#include <utility>
#include <vector>

#include "cluster/cluster_node.h"

namespace troupe {

void ClusterNode::CheckOnEngine(const SpotCheck& check) {
  Result<SpotResult> result = checker_.Check(check);
  const MutexLock lock(mu_);
  --checking_;
  if (!result.ok()) return;  // no slot, or the own disk fails: nothing is known of the peer
  using Found = SpotResult::Found;
  if (result->found == Found::kUnproven && AskAnother(check, std::move(result->own))) return;
  ++checks_.checked;
  switch (result->found) {
    case Found::kTrue:
      return;
    case Found::kOwnWrong:
      return SayOwnWrong(check.id);
    case Found::kPeerWrong:
      return ThrowOut(check);
    case Found::kUnproven:
      break;
  }
  if (second_opinion_.busy()) {
    ++checks_.undecided;
    return;
  }
  Say(fmt::format(
      "{}: a peer's rows are not this node's. Either may be wrong: this node's file has "
      "no checksums, and nobody else holds it",
      ToString(check.id)));
  ThrowOut(check);
}

// A third one that holds the expert.
bool ClusterNode::AskAnother(const SpotCheck& check, std::vector<float> own) {
  const std::vector<PeerEntry> peers = directory_.Entries();
  const auto other = std::ranges::find_if(peers, [&](const PeerEntry& peer) {
    return peer.link != 0 && peer.start != check.start && peer.held.Has(check.id);
  });
  return other != peers.end() &&
         second_opinion_.Ask(check, std::move(own), other->link, clock_.Now());
}

void ClusterNode::TakeOpinion(const SecondOpinion::Outcome& opinion) {
  ++checks_.checked;
  switch (opinion.verdict) {
    case SecondOpinion::Verdict::kPeerWrong:
      return ThrowOut(opinion.check);
    case SecondOpinion::Verdict::kOwnWrong:
      return SayOwnWrong(opinion.check.id);
    case SecondOpinion::Verdict::kNone:
      ++checks_.undecided;
  }
}

void ClusterNode::ThrowOut(const SpotCheck& check) {
  ++checks_.wrong;
  forgetting_ = true;
  core_->OnWrongAnswer(check.start, check.id, clock_.Now());
  Perform();
}

void ClusterNode::SayOwnWrong(ExpertId id) {
  ++checks_.own_wrong;
  if (!own_wrong_.insert(id).second) return;
  Say(fmt::format(
      "{}: this node's own copy is wrong, not the peer's: the disk or the memory of this "
      "machine is bad",
      ToString(id)));
}

// Earlier answers of a peer that was thrown out may be in what is kept of requests, of those under
// way, too: until for once none is.
void ClusterNode::ForgetOnEngine() {
  KvPool& kv = engine_.kv();
  kv.GiveUpKept();
  const bool is_empty = kv.free_positions() == kv.pages() * kv.page_positions();
  const MutexLock lock(mu_);
  forgetting_ = !is_empty;
}

}  // namespace troupe
