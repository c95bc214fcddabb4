// A FakeKvState behind a network on a virtual clock: what is asked and answered is delayed, lost,
// or done long after its asker has given up; watches break, some of them without a word. A seed
// decides.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "cluster/members/fake_kv_state_for_test.h"

namespace troupe {

class VirtualTime {
 public:
  Nanos now() const { return now_; }
  void After(Nanos wait, std::function<void()> what) {
    due_.emplace(std::pair(now_ + wait, ++count_), std::move(what));
  }
  void RunFor(Nanos span) {
    const Nanos end = now_ + span;
    while (!due_.empty() && due_.begin()->first.first <= end) {
      auto next = due_.extract(due_.begin());
      now_ = next.key().first;
      next.mapped()();
    }
    now_ = end;
  }

 private:
  Nanos now_ = 0;
  std::uint64_t count_ = 0;  // what is due at the same time happens in the order of its coming
  std::map<std::pair<Nanos, std::uint64_t>, std::function<void()>> due_;
};

class FakeKvNetwork;

// What one process sees of the store.
class FakeKvLink final : public KvStore, public std::enable_shared_from_this<FakeKvLink> {
 public:
  FakeKvLink(FakeKvNetwork& network, std::function<void(const KvEvent&)> tell)
      : network_(network), tell_(std::move(tell)) {}

  void Ask(KvAsk ask, KvRequest request) override;
  void set_cut(bool cut);
  void Close() { tell_ = nullptr; }  // its process is dead

 private:
  friend class FakeKvNetwork;
  struct Watch {
    std::string prefix;
    KvRevision from = 0;
    Nanos told_until = 0;
  };

  void Arrive(KvAsk ask, const KvRequest& request);
  void TellAfter(Nanos wait, KvEvent event);
  void Pump();
  void BreakWatches();
  void Fail(KvAsk ask, Nanos wait, KvFault fault = KvFault::kUnavailable) {
    TellAfter(wait, {.ask = ask, .what = KvFailure{.fault = fault, .message = "no answer"}});
  }

  FakeKvNetwork& network_;
  std::function<void(const KvEvent&)> tell_;
  bool cut_ = false;
  std::set<KvAsk> open_;  // neither answered nor ended
  std::map<KvAsk, Watch> watches_;
};

class FakeKvNetwork {
 public:
  FakeKvNetwork(VirtualTime& time, Rng& rng) : time_(time), rng_(rng) { Expire(); }

  std::shared_ptr<FakeKvLink> Connect(std::function<void(const KvEvent&)> tell) {
    auto link = std::make_shared<FakeKvLink>(*this, std::move(tell));
    links_.push_back(link);
    return link;
  }
  FakeKvState& state() { return state_; }
  void set_loss(double loss) { loss_ = loss; }
  void Stop() {
    up_ = false;
    ForEachLink([](FakeKvLink& link) { link.BreakWatches(); });
  }
  void Start() {
    if (up_) return;
    up_ = true;
    state_.RenewLeases(time_.now());
  }
  // The store stops; another one begins with this state.
  void Restore(FakeKvState backup) { state_ = std::move(backup); }

 private:
  friend class FakeKvLink;
  static constexpr Nanos kTimeout = 2 * kFakeSecond;

  void ForEachLink(const std::function<void(FakeKvLink&)>& what) {
    std::erase_if(links_, [](const auto& link) { return link.expired(); });
    for (const auto& link : links_) {
      if (const auto alive = link.lock()) what(*alive);
    }
  }
  void Pump() {
    ForEachLink([](FakeKvLink& link) { link.Pump(); });
  }
  void Expire() {
    if (up_) {
      state_.ExpireLeases(time_.now());
      Pump();
    }
    time_.After(kFakeSecond / 2, [this] { Expire(); });
  }
  bool Loses() { return loss_ > 0 && rng_.Uniform() < loss_; }
  // Rarely longer than anybody waits for an answer.
  Nanos Delay() {
    const double longest = loss_ == 0 || rng_.Below(10) > 0 ? 0.02 : rng_.Below(5) > 0 ? 0.5 : 5;
    return static_cast<Nanos>(rng_.Uniform() * longest * kFakeSecond);
  }

  VirtualTime& time_;
  Rng& rng_;
  FakeKvState state_;
  bool up_ = true;
  double loss_ = 0;
  std::vector<std::weak_ptr<FakeKvLink>> links_;
};

inline void FakeKvLink::Ask(KvAsk ask, KvRequest request) {
  if (const auto* end = std::get_if<EndWatch>(&request)) {
    open_.erase(end->watch);
    watches_.erase(end->watch);
    return;
  }
  open_.insert(ask);
  const bool lost = cut_ || network_.Loses();
  if (lost || !std::holds_alternative<WatchPrefix>(request)) Fail(ask, FakeKvNetwork::kTimeout);
  if (lost) return;
  network_.time_.After(
      network_.Delay(),
      [self = shared_from_this(), ask, asked = std::move(request)] { self->Arrive(ask, asked); });
}

inline void FakeKvLink::Arrive(KvAsk ask, const KvRequest& request) {
  if (!network_.up_ || cut_) return Fail(ask, network_.Delay());
  if (const auto* watch = std::get_if<WatchPrefix>(&request)) {
    if (!open_.contains(ask)) return;
    if (!network_.state_.ChangesFrom(watch->from, watch->prefix)) {
      return Fail(ask, network_.Delay(), KvFault::kCompacted);
    }
    watches_[ask] = {.prefix = watch->prefix, .from = watch->from};
    return Pump();
  }
  KvEvent answer = network_.state_.Answer(ask, request, network_.time_.now());
  network_.Pump();
  if (!network_.Loses()) TellAfter(network_.Delay(), std::move(answer));
}

inline void FakeKvLink::TellAfter(Nanos wait, KvEvent event) {
  network_.time_.After(wait, [self = shared_from_this(), told = std::move(event)] {
    const bool goes_on = std::holds_alternative<WatchChanges>(told.what);
    if (!goes_on && self->cut_ && !std::holds_alternative<KvFailure>(told.what)) return;
    if (goes_on ? !self->watches_.contains(told.ask) : self->open_.erase(told.ask) == 0) return;
    if (!goes_on) self->watches_.erase(told.ask);
    if (self->tell_) self->tell_(told);
  });
}

inline void FakeKvLink::Pump() {
  if (cut_) return;
  for (auto& [ask, watch] : watches_) {
    auto changes = network_.state_.ChangesFrom(watch.from, watch.prefix);
    TROUPE_CHECK(changes.has_value());  // each was told before it could be compacted
    if (changes->empty()) continue;
    watch.from = changes->back().entry.modified + 1;
    const Nanos now = network_.time_.now();
    watch.told_until = std::max(watch.told_until, now + network_.Delay());
    TellAfter(watch.told_until - now, {.ask = ask,
                                       .revision = network_.state_.revision(),
                                       .what = WatchChanges{*std::move(changes)}});
  }
}

// A third of them never says so.
inline void FakeKvLink::BreakWatches() {
  for (const auto& [ask, watch] : watches_) {
    if (network_.rng_.Below(3) > 0) Fail(ask, network_.Delay());
  }
  watches_.clear();
}

inline void FakeKvLink::set_cut(bool cut) {
  cut_ = cut;
  if (cut) BreakWatches();
}

}  // namespace troupe
