// A node's parts and its links: what comes over them, and what the state machine has done with
// them.
#include <algorithm>
#include <utility>

#include "cluster/member_news.h"
#include "cluster/node_parts.h"
#include "cluster/wire/fetch.h"
#include "cluster/wire/message_kind.h"

namespace troupe {

bool NodeParts::IsDialled(LinkId link) const {
  return std::ranges::any_of(dialled_, [link](const auto& one) { return one.second == link; });
}

void NodeParts::OnOpened(LinkId link, const PeerIdentity& peer, Nanos now) {
  if (IsDialled(link)) unreachable_.Forget(peer.address);
  core_.OnLinkOpened(link, peer, now);
  Perform(now);
}

void NodeParts::OnClosed(LinkId link, const Status& why, Nanos now) {
  ports_.host.OnGone(link);
  fetcher_.OnGone(link);
  second_opinion_.OnGone(link);
  core_.OnLinkClosed(link, why.message(), now);
  Perform(now);
}

void NodeParts::OnUnreachable(LinkId link, const Status& why, Nanos now) {
  const auto dialled =
      std::ranges::find(dialled_, link, [](const auto& one) { return one.second; });
  if (dialled == dialled_.end()) return;
  if (unreachable_.Add(dialled->first, why.message())) {
    ports_.say(fmt::format("no link to {}", why.message()));
  }
  if (why.code() == Code::kPermissionDenied) {
    core_.OnDistrusted(dialled->first, why.message());
    Perform(now);
  }
}

void NodeParts::OnFrame(LinkId link, std::vector<std::byte> frame, Nanos now) {
  const Result<PeerMessageKind> kind = KindOfFrame(frame);
  if (kind.ok() && core_.IsPeer(link)) {
    switch (*kind) {
      case PeerMessageKind::kAsk:
        return ports_.host.OnAsk(link, std::move(frame));
      case PeerMessageKind::kCancel:
        if (const auto cancel = DecodePeerCancel(frame); cancel.ok()) {
          ports_.host.OnCancel(link, cancel->call);
        }
        return;
      case PeerMessageKind::kFetch:
        if (const auto fetch = DecodePeerFetch(frame); fetch.ok()) {
          // Who gets nothing asks another one.
          (void)ports_.links.Send(link, giver_.Answer(*fetch));
        }
        return;
      case PeerMessageKind::kPiece:
      case PeerMessageKind::kFetchRefused:
        fetcher_.OnFrame(link, frame, now);
        return ports_.engine.Wake();
      case PeerMessageKind::kAnswer:
      case PeerMessageKind::kAskRefused:
        if (second_opinion_.OnFrame(link, frame)) return ports_.engine.Wake();
        return ports_.calls.OnFrame(link, std::move(frame));
      default:
        break;
    }
  }
  core_.OnFrame(link, frame, now);
  Perform(now);
}

void NodeParts::Dial(const std::string& address) {
  Result<LinkId> link = ports_.links.Dial(address);
  if (link.ok()) {
    dialled_[address] = *link;
    return;
  }
  ports_.say(link.status().message());
  dial_problem_ = link.status();
}

// Who has gone is told of soon. One that takes no more must not go on without this message: it is
// told all when it is there again.
void NodeParts::Send(LinkId link, Frame frame) {
  if (ports_.links.Send(link, std::move(frame)).code() == Code::kResourceExhausted) {
    ports_.links.Reset(link);
  }
}

void NodeParts::Perform(Nanos now) {
  for (NodeAction& action : core_.TakeActions()) Perform(action, now);
}

void NodeParts::Perform(NodeAction& action, Nanos now) {
  if (const auto* dial = std::get_if<node_action::Dial>(&action)) {
    Dial(dial->address);
  } else if (const auto* hang_up = std::get_if<node_action::HangUp>(&action)) {
    unreachable_.Forget(hang_up->address);
    if (const auto link = dialled_.extract(hang_up->address)) ports_.links.Close(link.mapped());
  } else if (auto* choose = std::get_if<node_action::Choose>(&action)) {
    ports_.engine.Choose(std::move(choose->job));
  } else if (const auto* fail = std::get_if<node_action::Fail>(&action)) {
    if (std::exchange(failed_, true) || !ports_.fail) return;
    ports_.fail(Error(Code::kFailedPrecondition, "{}", fail->why));
  } else if (const auto* suspect = std::get_if<node_action::Suspect>(&action)) {
    ports_.calls.Suspect(suspect->start);
  } else if (const auto* write = std::get_if<node_action::WritePlan>(&action)) {
    WritePlan(*membership_, core_, *write, now);
  } else if (auto* send = std::get_if<node_action::Send>(&action)) {
    Send(send->link, std::move(send->frame));
  } else if (const auto* close = std::get_if<node_action::CloseLink>(&action)) {
    ports_.links.Close(close->link);
  } else if (auto* broken = std::get_if<node_action::BreakLink>(&action)) {
    ports_.links.Break(broken->link, std::move(broken->frame));
  } else if (const auto* came = std::get_if<node_action::PeerCame>(&action)) {
    ports_.directory.OnCame(came->name, came->link, came->start, came->round_trip_seconds);
  } else if (const auto* holds = std::get_if<node_action::PeerHolds>(&action)) {
    ports_.directory.OnHoldings(holds->link, holds->held);
  } else if (const auto* left = std::get_if<node_action::PeerLeft>(&action)) {
    if (const auto peer = ports_.directory.OnGone(left->link)) ports_.calls.OnGone(*peer);
  } else if (auto* carry = std::get_if<node_action::Carry>(&action)) {
    Carry(std::move(carry->step));
  } else {
    ports_.say(std::get<node_action::Say>(action).text);
  }
}

}  // namespace troupe
