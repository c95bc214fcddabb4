// Two members and their store under all orders of the first things that can happen once one of them
// leads: requests reach the store, answers reach their member or are lost, time goes on, who
// believes that it leads writes a plan. No plan is written by who does not lead, none goes back,
// and from each state both agree in the end.
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/sanitized.h"
#include "cluster/members/fake_kv_state_for_test.h"
#include "cluster/members/membership.h"

namespace troupe {
namespace {

class TakingMember final : public KvStore {
 public:
  explicit TakingMember(const std::string& node) {
    member_ = std::make_unique<Membership>(
        MembershipOptions{
            .cluster = "lab", .node = node, .address = node + ":1", .model = "9f", .start = node},
        *this, 0);
  }

  void Ask(KvAsk ask, KvRequest request) override { asked_.emplace_back(ask, std::move(request)); }

  bool has_asked() const { return !asked_.empty(); }
  bool has_answers() const { return !answers_.empty(); }
  // The store does what was asked first.
  void Serve(FakeKvState& state, Nanos now, bool lose) {
    const auto [ask, request] = std::move(asked_.front());
    asked_.pop_front();
    if (std::holds_alternative<EndWatch>(request)) {
      watch_.reset();
    } else if (const auto* watch = std::get_if<WatchPrefix>(&request)) {
      watch_ = ask;
      prefix_ = watch->prefix;
      from_ = watch->from;
    } else {
      KvEvent answer = state.Answer(ask, request, now);
      if (lose) answer = {.ask = ask, .what = KvFailure{.message = "lost"}};
      answers_.push_back(std::move(answer));
    }
  }
  void Pump(const FakeKvState& state) {
    if (!watch_) return;
    auto changes = state.ChangesFrom(from_, prefix_);
    TROUPE_CHECK(changes.has_value());
    if (changes->empty()) return;
    from_ = changes->back().entry.modified + 1;
    answers_.push_back(
        {.ask = *watch_, .revision = state.revision(), .what = WatchChanges{*std::move(changes)}});
  }
  void Tell(Nanos now) {
    const KvEvent event = std::move(answers_.front());
    answers_.pop_front();
    member_->Told(event, now);
  }
  Membership* operator->() { return member_.get(); }

  std::string Key() const {
    std::string key = fmt::format("{} {} ", static_cast<int>(member_->state()), member_->leads());
    if (member_->leader()) key += member_->leader()->node;
    if (member_->plan()) key += fmt::format(" {}", member_->plan()->stamp.epoch);
    for (const auto& [ask, request] : asked_) key += fmt::format(" ?{}", request.index());
    for (const KvEvent& event : answers_) {
      key += fmt::format(" !{}.{}", event.what.index(), event.revision);
    }
    return key + (watch_ ? "w|" : "|");
  }

 private:
  std::deque<std::pair<KvAsk, KvRequest>> asked_;
  std::deque<KvEvent> answers_;
  std::optional<KvAsk> watch_;
  std::string prefix_;
  KvRevision from_ = 0;
  std::unique_ptr<Membership> member_;
};

class Takeover {
 public:
  enum class What { kServe, kLose, kTell, kTime, kTick, kWrite };
  struct Happening {
    What what = What::kServe;
    std::size_t member = 0;
  };

  Takeover() {
    state_.set_on_put([this](const FakeKvState& state, const KvPut& put) { OnPut(state, put); });
    GoOnUntilQuiet();
    Do({.what = What::kWrite, .member = members_[0]->leads() ? 0u : 1u});
    GoOnUntilQuiet();
    writes_ = times_ = losses_ = 0;
  }

  std::vector<Happening> Possible() {
    std::vector<Happening> all;
    for (std::size_t i = 0; i < 2; ++i) {
      if (members_[i].has_asked()) all.push_back({What::kServe, i});
      if (members_[i].has_asked() && losses_ < 1) all.push_back({What::kLose, i});
      if (members_[i].has_answers()) all.push_back({What::kTell, i});
      if (members_[i]->next_tick() <= now_) all.push_back({What::kTick, i});
      if (members_[i]->leads() && writes_ < 2 && !writing_[i]) all.push_back({What::kWrite, i});
    }
    if (times_ < 3) all.push_back({What::kTime, 0});
    return all;
  }

  void Do(const Happening& happening) {
    TakingMember& member = members_[happening.member];
    switch (happening.what) {
      case What::kLose:
        ++losses_;
        member.Serve(state_, now_, true);
        break;
      case What::kServe:
        member.Serve(state_, now_, false);
        break;
      case What::kTell:
        member.Tell(now_);
        break;
      case What::kTick:
        member->Tick(now_);
        break;
      case What::kTime:
        ++times_;
        now_ += 6 * kFakeSecond;
        state_.ExpireLeases(now_);
        break;
      case What::kWrite:
        ++writes_;
        writing_[happening.member] = member->WritePlan(Json(++plans_), now_).ok();
        break;
    }
    for (std::size_t i = 0; i < 2; ++i) {
      members_[i].Pump(state_);
      if (members_[i]->TakeNews().written) writing_[i] = false;
      Look(i);
    }
  }

  // Nothing is lost any more and time goes on: they agree.
  void EndWell() {
    losses_ = 1;
    GoOnUntilQuiet();
    if (members_[0]->leads() == members_[1]->leads()) problem_ = "not one of them leads";
    for (std::size_t i = 0; i < 2; ++i) {
      if (members_[i]->state() != MemberState::kMember) problem_ = "not both are members";
      if (!members_[i]->plan()) problem_ = "a plan is gone";
    }
    if (problem_.empty() && members_[0]->plan()->stamp != members_[1]->plan()->stamp) {
      problem_ = "they have two plans";
    }
  }

  std::string Key() const {
    std::string key = fmt::format("{} {} {} {} {}{} ", now_ / kFakeSecond, times_, writes_, losses_,
                                  writing_[0], writing_[1]);
    for (const auto& [name, entry] : state_.keys()) key += entry.value + ';';
    return key + members_[0].Key() + members_[1].Key();
  }
  const std::string& problem() const { return problem_; }

 private:
  void GoOnUntilQuiet() {
    for (int second = 0; second < 40; ++second) {
      for (bool worked = true; worked;) {
        worked = false;
        for (std::size_t i = 0; i < 2; ++i) {
          while (members_[i].has_asked()) Do({What::kServe, i}), worked = true;
          while (members_[i].has_answers()) Do({What::kTell, i}), worked = true;
          if (members_[i]->next_tick() <= now_) Do({What::kTick, i}), worked = true;
        }
      }
      now_ += kFakeSecond;
      state_.ExpireLeases(now_);
    }
  }

  void OnPut(const FakeKvState& state, const KvPut& put) {
    if (put.key != keys_.plan()) return;
    const PlanStamp stamp = ParsePlan(put.value)->stamp;
    const KvEntry* const leader = state.Find(keys_.leader());
    const KvEntry* const before = state.Find(keys_.plan());
    if (leader == nullptr || ParseLeader(leader->value)->start != stamp.by) {
      problem_ = "a plan is written by who does not lead";
    }
    if (before != nullptr && ParsePlan(before->value)->stamp.epoch >= stamp.epoch) {
      problem_ = "a plan goes back";
    }
  }
  void Look(std::size_t i) {
    const auto& plan = members_[i]->plan();
    const std::uint64_t epoch = plan ? plan->stamp.epoch : 0;
    if (epoch < accepted_[i]) problem_ = "a member takes an older plan";
    accepted_[i] = epoch;
  }

  const ClusterKeys keys_{"lab"};
  FakeKvState state_;
  Nanos now_ = 0;
  std::array<TakingMember, 2> members_{TakingMember("a"), TakingMember("b")};
  std::array<bool, 2> writing_ = {};
  std::array<std::uint64_t, 2> accepted_ = {};
  int writes_ = 0, times_ = 0, losses_ = 0, plans_ = 0;
  std::string problem_;
};

// A membership cannot be copied: each path is walked anew.
TEST(TakeoverOrders, InEveryOrderNoPlanIsOfAnOldLeaderAndBothAgreeInTheEnd) {
  const std::size_t longest = kSanitized ? 4 : 7;
  std::deque<std::vector<Takeover::Happening>> to_visit = {{}};
  std::set<std::string> seen;
  while (!to_visit.empty()) {
    const std::vector<Takeover::Happening> path = std::move(to_visit.front());
    to_visit.pop_front();
    Takeover takeover;
    for (const Takeover::Happening& happening : path) takeover.Do(happening);
    ASSERT_EQ(takeover.problem(), "");
    if (!seen.insert(takeover.Key()).second) continue;
    const std::vector<Takeover::Happening> possible = takeover.Possible();
    const std::string key = takeover.Key();
    takeover.EndWell();
    ASSERT_EQ(takeover.problem(), "") << key;
    if (path.size() == longest) continue;
    for (const Takeover::Happening& happening : possible) {
      to_visit.push_back(path);
      to_visit.back().push_back(happening);
    }
  }
  EXPECT_GT(seen.size(), kSanitized ? 20u : 200u);
}

}  // namespace
}  // namespace troupe
