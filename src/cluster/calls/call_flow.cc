#include "cluster/calls/call_flow.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "base/check.h"

namespace troupe {

void CallFlow::Ask(std::span<const AskedExpert> experts, std::span<const Place> peers) {
  TROUPE_CHECK(waiting_.empty() && to_send_.empty() && to_load_.empty());
  peers_.assign(peers.begin(), peers.end());
  for (const AskedExpert& asked : experts) {
    TROUPE_CHECK(!asked.holders.empty());
    waiting_.push_back({.expert = asked.expert,
                        .rows = asked.rows,
                        .holders = {asked.holders.begin(), asked.holders.end()},
                        .calls = {},
                        .load_seconds = asked.load_seconds});
    ++counters_.experts;
    AskNext(waiting_.size() - 1, /*is_hedge=*/false);
  }
}

// Calls that were not taken yet gather the experts of one peer.
CallToSend& CallFlow::CallTo(PeerIndex peer, bool is_hedge) {
  for (CallToSend& call : to_send_) {
    if (call.peer == peer && call.is_hedge == is_hedge) return call;
  }
  to_send_.push_back({.call = ++last_call_, .peer = peer, .is_hedge = is_hedge, .experts = {}});
  ++(is_hedge ? counters_.hedges : counters_.calls);
  return to_send_.back();
}

void CallFlow::TurnToNext(std::size_t waiting, bool is_hedge) {
  Waiting& one = waiting_[waiting];
  if (one.on_disk) {
    if (one.calls.empty()) Erase(waiting);
    return;
  }
  std::erase_if(one.holders, [&](PeerIndex index) {
    const Place& peer = peers_[index];
    const double seconds = peer.queued_seconds + peer.latency_seconds + peer.SecondsFor(one.rows);
    return !one.disk_failed && one.load_seconds > 0 && seconds > one.load_seconds;
  });
  if (one.holders.empty() && one.calls.empty() && !one.busy.empty()) {
    one.late_at = one.rests_until;
    return;
  }
  one.holders.empty() ? ToDisk(waiting) : AskNext(waiting, is_hedge);
}

void CallFlow::AskNext(std::size_t waiting, bool is_hedge) {
  Waiting& one = waiting_[waiting];
  CallToSend& call = CallTo(one.holders.front(), is_hedge);
  one.holders.erase(one.holders.begin());
  call.experts.push_back(one.expert);
  one.calls.push_back({.id = call.call, .peer = call.peer});
  one.late_at = kNever;
}

Nanos CallFlow::AllowedFor(const CallToSend& call) const {
  constexpr double kLongest = 3600e9;
  TROUPE_CHECK(call.peer < peers_.size());
  const Place& peer = peers_[call.peer];
  double seconds = peer.queued_seconds + peer.latency_seconds;
  for (const Waiting& one : waiting_) {
    if (!one.calls.empty() && one.calls.back().id == call.call) {
      seconds += peer.SecondsFor(one.rows);
    }
  }
  const double allowed = std::min(seconds * rules_.late_after * 1e9, kLongest);
  return std::max(rules_.least, Nanos{std::llround(allowed)});
}

std::vector<CallToSend> CallFlow::TakeCalls(Nanos now) {
  for (CallToSend& call : to_send_) {
    const Nanos allowed = AllowedFor(call);
    call.given_up_after = allowed * rules_.given_up_after;
    for (Waiting& one : waiting_) {
      if (one.calls.empty() || one.calls.back().id != call.call) continue;
      one.late_at = now + allowed;
      if (one.disk_failed) call.given_up_after += rules_.without_disk;
    }
    sent_.push_back({.id = call.call, .peer = call.peer});
  }
  return std::exchange(to_send_, {});
}

std::vector<std::uint32_t> CallFlow::TakeToLoad() { return std::exchange(to_load_, {}); }

std::vector<CallToCancel> CallFlow::TakeCancels() {
  std::vector<CallToCancel> cancels;
  std::erase_if(sent_, [&](const OpenCall& call) {
    const bool is_wanted = std::ranges::any_of(waiting_, [&](const Waiting& one) {
      return std::ranges::find(one.calls, call.id, &OpenCall::id) != one.calls.end();
    });
    if (!is_wanted) cancels.push_back({.call = call.id, .peer = call.peer});
    return !is_wanted;
  });
  counters_.cancelled += cancels.size();
  return cancels;
}

bool CallFlow::OnAnswered(PeerCallId call, std::uint32_t expert) {
  const auto found = std::ranges::find_if(waiting_, [&](const Waiting& one) {
    return one.expert == expert &&
           std::ranges::find(one.calls, call, &OpenCall::id) != one.calls.end();
  });
  if (found == waiting_.end()) {
    ++counters_.unused;
    return false;
  }
  if (found->on_disk) ++counters_.overtook;
  waiting_.erase(found);
  ++counters_.answered;
  return true;
}

void CallFlow::ToDisk(std::size_t waiting) {
  Waiting& one = waiting_[waiting];
  to_load_.push_back(one.expert);
  ++counters_.to_disk;
  one.on_disk = true;
  one.late_at = kNever;
  if (one.calls.empty()) Erase(waiting);
}

void CallFlow::OnLoaded(std::uint32_t expert) {
  std::erase_if(waiting_, [expert](const Waiting& one) { return one.expert == expert; });
}

void CallFlow::AskInPlaceOfDisk(const AskedExpert& asked) {
  TROUPE_CHECK(!asked.holders.empty());
  ++counters_.failed_loads;
  OnLoaded(asked.expert);  // who answers late is asked again: once more costs little now
  waiting_.push_back({.expert = asked.expert,
                      .rows = asked.rows,
                      .holders = {asked.holders.begin(), asked.holders.end()},
                      .calls = {},
                      .disk_failed = true});
  ++counters_.experts;
  AskNext(waiting_.size() - 1, /*is_hedge=*/false);
}

// Who waits for nobody else is asked of the next holder, or loaded.
bool CallFlow::DropCall(PeerCallId call) {
  bool any = false;
  for (std::size_t i = waiting_.size(); i-- > 0;) {
    Waiting& one = waiting_[i];
    const auto is_it = [call](const OpenCall& open) { return open.id == call; };
    if (std::erase_if(one.calls, is_it) == 0) continue;
    any = true;
    if (one.calls.empty()) TurnToNext(i, /*is_hedge=*/false);
  }
  return any;
}

void CallFlow::OnRefused(PeerCallId call) {
  std::erase_if(sent_, [call](const OpenCall& open) { return open.id == call; });
  if (DropCall(call)) ++counters_.refused;
}

void CallFlow::OnBusy(PeerCallId call, Nanos now) {
  for (Waiting& one : waiting_) {
    const auto open = std::ranges::find(one.calls, call, &OpenCall::id);
    if (!one.disk_failed || open == one.calls.end()) continue;
    one.busy.push_back(open->peer);
    one.rests_until = now + rules_.busy_pause;
    if (one.given_up_at == kNever) one.given_up_at = now + rules_.without_disk;
  }
  OnRefused(call);
}

void CallFlow::OnLost(PeerIndex peer) {
  std::erase_if(to_send_, [peer](const CallToSend& call) { return call.peer == peer; });
  std::erase_if(sent_, [peer](const OpenCall& open) { return open.peer == peer; });
  std::set<PeerCallId> lost;
  for (Waiting& one : waiting_) {
    std::erase(one.holders, peer);
    std::erase(one.busy, peer);
    for (const OpenCall& open : one.calls) {
      if (open.peer == peer) lost.insert(open.id);
    }
  }
  for (const PeerCallId call : lost) DropCall(call);
  counters_.lost += lost.size();
}

// Those who were busy may have room by now.
void CallFlow::TakeBusyAgain(Waiting& one, Nanos now) {
  const std::vector<PeerIndex> busy = std::exchange(one.busy, {});
  if (busy.empty() || now >= one.given_up_at) return;
  one.holders.insert(one.holders.end(), busy.begin(), busy.end());
  if (one.calls.empty()) ++counters_.asked_again;
}

std::vector<PeerCallId> CallFlow::OnTime(Nanos now) {
  std::set<PeerCallId> late;
  for (std::size_t i = waiting_.size(); i-- > 0;) {
    if (waiting_[i].late_at > now) continue;
    TakeBusyAgain(waiting_[i], now);
    if (waiting_[i].calls.empty()) {
      TurnToNext(i, /*is_hedge=*/false);
      continue;
    }
    if (waiting_[i].holders.empty() && waiting_[i].disk_failed && !waiting_[i].waits_long) {
      waiting_[i].waits_long = true;  // there is nobody else
      waiting_[i].late_at = now + rules_.without_disk;
      continue;
    }
    OpenCall& last = waiting_[i].calls.back();
    if (!std::exchange(last.is_late, true)) late.insert(last.id);
    TurnToNext(i, /*is_hedge=*/true);
  }
  return {late.begin(), late.end()};
}

void CallFlow::Forget() {
  waiting_.clear();
  to_send_.clear();
  to_load_.clear();
}

std::optional<Nanos> CallFlow::NextTime() const {
  if (waiting_.empty()) return std::nullopt;
  const Nanos next = std::ranges::min(waiting_, {}, &Waiting::late_at).late_at;
  if (next == kNever) return std::nullopt;
  return next;
}

}  // namespace troupe
