// Members around one FakeKvState whose answers come at once, on a clock that the test moves. A
// member can be held (its process is stopped) or cut off (its asks fail).
#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "cluster/members/fake_kv_state_for_test.h"
#include "cluster/members/membership.h"

namespace troupe {

class LabMember final : public KvStore {
 public:
  LabMember(FakeKvState& state, MembershipOptions options, Nanos now)
      : state_(state), member_(std::move(options), *this, now) {}

  Membership& member() { return member_; }
  Membership* operator->() { return &member_; }
  void set_held(bool held) { held_ = held; }
  void set_cut_off(bool cut_off, KvFault why = KvFault::kUnavailable) {
    cut_off_ = cut_off;
    why_ = why;
  }
  // As a store whose disk is full: it can be read, and leases that there are live on.
  void set_refuses_writes(bool refuses) { refuses_writes_ = refuses; }
  // The next answer is lost, though what was asked is done.
  void LoseNextAnswer() { lose_next_ = true; }
  const std::optional<KvAsk>& watch() const { return watch_; }

  void Ask(KvAsk ask, KvRequest request) override { asked_.emplace_back(ask, std::move(request)); }

  // Whether anything happened.
  bool Work(Nanos now) {
    if (held_) return false;
    bool worked = false;
    if (member_.next_tick() <= now) {
      member_.Tick(now);
      worked = true;
    }
    for (const auto& [ask, request] : std::exchange(asked_, {})) {
      Answer(ask, request, now);
      worked = true;
    }
    return TellChanges(now) || worked;
  }
  Nanos next_tick() const {
    return held_ ? std::numeric_limits<Nanos>::max() : member_.next_tick();
  }

 private:
  void Answer(KvAsk ask, const KvRequest& request, Nanos now) {
    if (std::holds_alternative<EndWatch>(request)) {
      watch_.reset();
    } else if (cut_off_) {
      Fail(ask, why_, now);
    } else if (refuses_writes_ && (std::holds_alternative<GrantLease>(request) ||
                                   std::holds_alternative<KvTransaction>(request))) {
      member_.Told(
          {.ask = ask, .what = KvFailure{.fault = KvFault::kRefused, .message = "no space"}}, now);
    } else if (const auto* watch = std::get_if<WatchPrefix>(&request)) {
      TROUPE_CHECK(!watch_);
      watch_ = ask;
      prefix_ = watch->prefix;
      from_ = watch->from;
    } else {
      const KvEvent event = state_.Answer(ask, request, now);
      if (std::exchange(lose_next_, false)) return Fail(ask, KvFault::kUnavailable, now);
      member_.Told(event, now);
    }
  }
  bool TellChanges(Nanos now) {
    if (!watch_) return false;
    const std::optional<std::vector<KvChange>> changes = state_.ChangesFrom(from_, prefix_);
    if (cut_off_ || !changes) {
      Fail(*std::exchange(watch_, std::nullopt), cut_off_ ? why_ : KvFault::kCompacted, now);
      return true;
    }
    if (changes->empty()) return false;
    from_ = changes->back().entry.modified + 1;
    member_.Told({.ask = *watch_, .revision = state_.revision(), .what = WatchChanges{*changes}},
                 now);
    return true;
  }
  void Fail(KvAsk ask, KvFault fault, Nanos now) {
    member_.Told({.ask = ask, .what = KvFailure{.fault = fault, .message = "cut off"}}, now);
  }

  FakeKvState& state_;
  Membership member_;
  std::vector<std::pair<KvAsk, KvRequest>> asked_;
  std::optional<KvAsk> watch_;
  std::string prefix_;
  KvRevision from_ = 0;
  bool held_ = false, cut_off_ = false, lose_next_ = false, refuses_writes_ = false;
  KvFault why_ = KvFault::kUnavailable;
};

class MemberLab {
 public:
  // Its start id is `start`, or its name.
  LabMember& Add(const std::string& node, std::string start = "", const std::string& model = "9f",
                 std::optional<KvFault> cut_off = std::nullopt) {
    LabMember& added = AddUnsettled(node, std::move(start), model);
    if (cut_off) added.set_cut_off(true, *cut_off);
    Settle();
    return added;
  }
  LabMember& AddUnsettled(const std::string& node, std::string start = "",
                          const std::string& model = "9f", std::string address = "") {
    if (start.empty()) start = node;
    if (address.empty()) address = node + ":7400";
    members_.push_back(std::make_unique<LabMember>(state_,
                                                   MembershipOptions{.cluster = "lab",
                                                                     .node = node,
                                                                     .address = std::move(address),
                                                                     .model = model,
                                                                     .start = std::move(start),
                                                                     .new_cluster = new_cluster_},
                                                   now_));
    return *members_.back();
  }
  // Of those that are added from now on.
  void set_new_cluster(bool new_cluster) { new_cluster_ = new_cluster; }
  // As a process that is killed: gives nothing back.
  void Kill(LabMember& member) {
    std::erase_if(members_, [&](const auto& other) { return other.get() == &member; });
  }
  void Advance(Nanos by) {
    const Nanos end = now_ + by;
    while (true) {
      Nanos next = state_.next_end().value_or(end + 1);
      for (const auto& member : members_) next = std::min(next, member->next_tick());
      if (next > end) break;
      now_ = std::max(now_, next);
      Settle();
    }
    now_ = end;
    Settle();
  }
  // Until nobody has anything to do any more.
  void Settle() {
    state_.ExpireLeases(now_);
    for (bool worked = true; worked;) {
      worked = false;
      for (const auto& member : members_) worked |= member->Work(now_);
    }
  }

  FakeKvState& state() { return state_; }
  Nanos now() const { return now_; }

 private:
  FakeKvState state_;
  Nanos now_ = 0;
  bool new_cluster_ = false;
  std::vector<std::unique_ptr<LabMember>> members_;
};

}  // namespace troupe
