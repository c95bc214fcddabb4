#include "cluster/plan_follower.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <variant>

#include "base/check.h"

namespace troupe {
namespace {

constexpr Nanos kRetryAfter = 30'000'000'000;  // a step that failed

}  // namespace

PlanFollower::PlanFollower(Self self, Others others)
    : self_(std::move(self)),
      others_(std::move(others)),
      held_(self_.held),
      rests_(self_.grid.Count()) {
  TROUPE_CHECK(held_.size() == self_.grid.Count());
}

void PlanFollower::Adopt(ClusterPlan plan) {
  plan_ = std::move(plan);
  stuck_ = false;
  const ClusterPlan::Node* const wanted = plan_->Find(self_.node);
  for (std::uint32_t layer = 0; layer < self_.grid.layers; ++layer) {
    for (std::uint32_t expert = 0; expert < self_.grid.experts; ++expert) {
      const ExpertId id{layer, expert};
      if (wanted == nullptr || !wanted->Wants(id)) rests_[self_.grid.Index(id)] = 0;
    }
  }
  ++sequence_;  // others count on what is held by the plan that they follow
}

PeerHoldings PlanFollower::Holdings() const {
  PeerHoldings holdings{.epoch = epoch(), .sequence = sequence_, .held = ExpertBits(self_.grid)};
  for (std::uint32_t layer = 0; layer < self_.grid.layers; ++layer) {
    for (std::uint32_t expert = 0; expert < self_.grid.experts; ++expert) {
      if (Holds({layer, expert})) holdings.held.Add({layer, expert});
    }
  }
  return holdings;
}

std::optional<HoldingStep> PlanFollower::DrainStep(
    const std::function<bool(ExpertId)>& may_go) const {
  for (std::uint32_t layer = 0; layer < self_.grid.layers; ++layer) {
    for (std::uint32_t expert = 0; expert < self_.grid.experts; ++expert) {
      const ExpertId id{layer, expert};
      if (Holds(id) && may_go(id)) return ReleaseStep{id};
    }
  }
  return std::nullopt;
}

std::optional<HoldingStep> PlanFollower::Step() const {
  const ClusterPlan::Node* const wanted = plan_ ? plan_->Find(self_.node) : nullptr;
  // The plan of before still names a node that is to go; one that is to stay waits for one that
  // names it.
  if (!plan_ || draining_ == (wanted != nullptr)) return std::nullopt;
  const std::vector<OtherNode> others = others_(*plan_);
  const auto may_go = [&](ExpertId id) { return MayLeave(id, self_.node, plan_->epoch, others); };
  if (draining_) return DrainStep(may_go);
  const auto may_rest = [&](ExpertId id) {
    return MayRest(id, self_.node, plan_->epoch, self_.copies, others);
  };
  const HoldingFacts facts{.grid = self_.grid,
                           .held = held_,
                           .most_held = self_.most_held,
                           .at_once = at_once_,
                           .may_go = may_go};
  if (use_.empty()) return NextStep(*wanted, facts);
  if (auto step = NextStep(Wanted(*wanted, may_rest), facts)) return step;
  return RestStep(*wanted, may_rest);
}

void PlanFollower::Rest(std::vector<double> use) {
  TROUPE_CHECK(use.empty() || use.size() == held_.size());
  use_ = std::move(use);
  const double all = std::accumulate(use_.begin(), use_.end(), 0.0);
  usual_use_ = use_.empty() ? 0 : all / static_cast<double>(use_.size());
}

// Without what rests, as long as others hold that.
ClusterPlan::Node PlanFollower::Wanted(const ClusterPlan::Node& planned,
                                       const std::function<bool(ExpertId)>& may_rest) const {
  ClusterPlan::Node wanted = planned;
  for (std::uint32_t layer = 0; layer < wanted.held.size(); ++layer) {
    std::erase_if(wanted.held[layer], [&](std::uint32_t expert) {
      return rests_[self_.grid.Index({layer, expert})] != 0 && may_rest({layer, expert});
    });
  }
  return wanted;
}

std::optional<HoldingStep> PlanFollower::RestStep(
    const ClusterPlan::Node& wanted, const std::function<bool(ExpertId)>& may_rest) const {
  for (std::uint32_t layer = 0; layer < wanted.held.size(); ++layer) {
    for (const std::uint32_t expert : wanted.held[layer]) {
      const ExpertId id{layer, expert};
      if (Holds(id) && IsLittleUsed(id) && may_rest(id)) return ReleaseStep{id};
    }
  }
  return std::nullopt;
}

std::size_t PlanFollower::resting() const {
  return use_.empty() ? 0 : static_cast<std::size_t>(std::ranges::count(rests_, 1));
}

bool PlanFollower::HoldsAsPlanned() const {
  const ClusterPlan::Node* const wanted = plan_->Find(self_.node);
  if (draining_ || wanted == nullptr) return true;
  std::vector<std::uint8_t> planned(held_.size());
  for (std::uint32_t layer = 0; layer < wanted->held.size(); ++layer) {
    for (const std::uint32_t expert : wanted->held[layer]) {
      const std::size_t at = self_.grid.Index({layer, expert});
      planned[at] = use_.empty() || rests_[at] == 0 || held_[at] != 0 ? 1 : 0;
    }
  }
  return planned == held_;
}

std::optional<HoldingStep> PlanFollower::TakeStep() {
  if (carrying_ || stuck_) return std::nullopt;
  std::optional<HoldingStep> step = Step();
  if (!step) return std::nullopt;
  carrying_ = true;
  carried_of_ = plan_->epoch;
  if (const auto* release = std::get_if<ReleaseStep>(&*step)) {
    const std::size_t at = self_.grid.Index(release->id);
    held_[at] = 0;  // peers must not ask for it any more
    ++sequence_;
    const ClusterPlan::Node* const wanted = plan_->Find(self_.node);
    const bool rests = wanted != nullptr && wanted->Wants(release->id);
    rests_[at] = rests ? 1 : 0;
    rested_ += rests ? 1 : 0;
  }
  return step;
}

void PlanFollower::OnHeld(std::vector<std::uint8_t> held, bool as_planned) {
  TROUPE_CHECK(held.size() == held_.size());
  carrying_ = false;
  stuck_ = !as_planned && plan_ && plan_->epoch == carried_of_;  // not the plan that came since
  if (held == held_) return;
  held_ = std::move(held);
  for (std::size_t i = 0; i < rests_.size(); ++i) rests_[i] = held_[i] != 0 ? 0 : rests_[i];
  ++sequence_;
}

bool PlanFollower::OnTime(Nanos now) {
  if (stuck_ && !retry_at_) retry_at_ = now + kRetryAfter;
  if (!retry_at_ || now < *retry_at_) return false;
  retry_at_.reset();
  return std::exchange(stuck_, false);
}

}  // namespace troupe
