// A node and its links: what comes over them, and what its state machine has done with them.
#include <algorithm>
#include <utility>

#include "cluster/cluster_node.h"
#include "cluster/member_news.h"
#include "cluster/wire/fetch.h"
#include "cluster/wire/message_kind.h"

namespace troupe {

bool ClusterNode::IsDialled(LinkId link) const {
  return std::ranges::any_of(dialled_, [link](const auto& one) { return one.second == link; });
}

void ClusterNode::OnOpened(LinkId link, const PeerIdentity& peer) {
  const MutexLock lock(mu_);
  if (stopping_) return;
  if (IsDialled(link)) unreachable_.Forget(peer.address);
  core_->OnLinkOpened(link, peer, clock_.Now());
  Perform();
}

void ClusterNode::OnClosed(LinkId link, const Status& why) {
  host_->OnGone(link);
  const MutexLock lock(mu_);
  if (stopping_) return;
  fetcher_.OnGone(link);
  second_opinion_.OnGone(link);
  core_->OnLinkClosed(link, why.message(), clock_.Now());
  Perform();
}

void ClusterNode::OnUnreachable(LinkId link, const Status& why) {
  const MutexLock lock(mu_);
  const auto dialled =
      std::ranges::find(dialled_, link, [](const auto& one) { return one.second; });
  if (stopping_ || dialled == dialled_.end()) return;
  if (unreachable_.Add(dialled->first, why.message())) {
    Say(fmt::format("no link to {}", why.message()));
  }
  if (why.code() == Code::kPermissionDenied) {
    core_->OnDistrusted(dialled->first, why.message());
    Perform();
  }
}

void ClusterNode::OnFrame(LinkId link, std::span<const std::byte> frame) {
  // Where numbers lie as they must: gRPC's memory begins anywhere.
  std::vector<std::byte> own(frame.begin(), frame.end());
  const Result<PeerMessageKind> kind = KindOfFrame(own);
  const MutexLock lock(mu_);
  if (stopping_) return;
  if (kind.ok() && core_->IsPeer(link)) {
    switch (*kind) {
      case PeerMessageKind::kAsk:
        return host_->OnAsk(link, std::move(own));
      case PeerMessageKind::kCancel:
        if (const auto cancel = DecodePeerCancel(own); cancel.ok()) {
          host_->OnCancel(link, cancel->call);
        }
        return;
      case PeerMessageKind::kFetch:
        if (const auto fetch = DecodePeerFetch(own); fetch.ok()) {
          (void)links_->Send(link, giver_.Answer(*fetch));  // who gets nothing asks another one
        }
        return;
      case PeerMessageKind::kPiece:
      case PeerMessageKind::kFetchRefused:
        fetcher_.OnFrame(link, own, clock_.Now());
        return changed_.NotifyAll();
      case PeerMessageKind::kAnswer:
      case PeerMessageKind::kAskRefused:
        if (second_opinion_.OnFrame(link, own)) return changed_.NotifyAll();
        return calls_.OnFrame(link, std::move(own));
      default:
        break;
    }
  }
  core_->OnFrame(link, own, clock_.Now());
  Perform();
}

void ClusterNode::Dial(const std::string& address) {
  Result<LinkId> link = links_->Dial(address);
  if (link.ok()) {
    dialled_[address] = *link;
    return;
  }
  Say(link.status().message());
  dial_problem_ = link.status();
}

// Who has gone is told of soon. One that takes no more must not go on without this message: it is
// told all when it is there again.
void ClusterNode::Send(LinkId link, Frame frame) {
  if (links_->Send(link, std::move(frame)).code() == Code::kResourceExhausted) links_->Reset(link);
}

void ClusterNode::Perform() {
  for (NodeAction& action : core_->TakeActions()) {
    if (const auto* dial = std::get_if<node_action::Dial>(&action)) {
      Dial(dial->address);
    } else if (const auto* hang_up = std::get_if<node_action::HangUp>(&action)) {
      unreachable_.Forget(hang_up->address);
      if (const auto link = dialled_.extract(hang_up->address)) links_->Close(link.mapped());
    } else if (auto* choose = std::get_if<node_action::Choose>(&action)) {
      to_choose_ = std::move(choose->job);
      choose_.NotifyOne();
    } else if (const auto* fail = std::get_if<node_action::Fail>(&action)) {
      Fail(fail->why);
    } else if (const auto* suspect = std::get_if<node_action::Suspect>(&action)) {
      calls_.Suspect(suspect->start);
    } else if (const auto* write = std::get_if<node_action::WritePlan>(&action)) {
      WritePlan(*membership_, *core_, *write, clock_.Now());
    } else if (auto* send = std::get_if<node_action::Send>(&action)) {
      Send(send->link, std::move(send->frame));
    } else if (const auto* close = std::get_if<node_action::CloseLink>(&action)) {
      links_->Close(close->link);
    } else if (auto* broken = std::get_if<node_action::BreakLink>(&action)) {
      links_->Break(broken->link, std::move(broken->frame));
    } else if (const auto* came = std::get_if<node_action::PeerCame>(&action)) {
      directory_.OnCame(came->name, came->link, came->start, came->round_trip_seconds);
    } else if (const auto* holds = std::get_if<node_action::PeerHolds>(&action)) {
      directory_.OnHoldings(holds->link, holds->held);
    } else if (const auto* left = std::get_if<node_action::PeerLeft>(&action)) {
      if (const auto peer = directory_.OnGone(left->link)) calls_.OnGone(*peer);
    } else if (auto* carry = std::get_if<node_action::Carry>(&action)) {
      Carry(std::move(carry->step));
    } else {
      Say(std::get<node_action::Say>(action).text);
    }
  }
}

}  // namespace troupe
