// A LoadPort that remembers what it was asked, and whose loads end when a test says so.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "base/check.h"
#include "expert/flow/load_port.h"

namespace troupe {

class ScriptedLoads final : public LoadPort {
 public:
  struct Load {
    ExpertId id;
    std::uint32_t slot = 0;
    ExpertCopy copy = ExpertCopy::kFull;
    Urgency urgency = Urgency::kDemand;
    bool cancelled = false;

    bool operator==(const Load&) const = default;
  };

  void Begin(ExpertId id, std::uint32_t slot, ExpertCopy copy, Urgency urgency) override {
    TROUPE_CHECK(Find(id) == under_way_.end());
    for (const Load& load : under_way_) TROUPE_CHECK(load.slot != slot);
    under_way_.push_back({.id = id, .slot = slot, .copy = copy, .urgency = urgency});
    begun_.push_back(under_way_.back());
  }
  void Promote(ExpertId id) override {
    TROUPE_CHECK(Find(id) != under_way_.end());
    if (Find(id)->urgency == Urgency::kDemand) return;
    Find(id)->urgency = Urgency::kDemand;
    promoted_.push_back(id);
  }
  CallOff Cancel(ExpertId id) override {
    TROUPE_CHECK(Find(id) != under_way_.end() && Find(id)->urgency != Urgency::kDemand);
    if (cancel_says_ == CallOff::kGone) under_way_.erase(Find(id));
    if (cancel_says_ == CallOff::kEnding) Find(id)->cancelled = true;
    return cancel_says_;
  }
  double SecondsFor(std::uint32_t) const override { return 0.001; }
  AnswerCosts CostsFor(std::uint32_t) const override { return costs_; }
  Bytes BytesLeft(ExpertId) const override { return left_.value_or(costs_.full); }
  double SecondsLeft(ExpertId) const override { return 0.001; }
  double SecondsHeld(std::uint32_t) const override { return 0.001; }
  bool idle() const override { return under_way_.empty(); }

  // The load ends; what to tell the flow.
  LoadEnd End(ExpertId id, Status status = OkStatus()) {
    TROUPE_CHECK(Find(id) != under_way_.end());
    if (Find(id)->cancelled) status = Error(Code::kCancelled, "{}: called off", ToString(id));
    under_way_.erase(Find(id));
    return {.id = id, .status = std::move(status)};
  }
  void set_costs(const AnswerCosts& costs) { costs_ = costs; }
  void set_left(Bytes left) { left_ = left; }
  void set_cancel_says(CallOff says) { cancel_says_ = says; }

  const std::vector<Load>& under_way() const { return under_way_; }
  // Since the last call.
  std::vector<Load> TakeBegun() { return std::exchange(begun_, {}); }
  std::vector<ExpertId> TakePromoted() { return std::exchange(promoted_, {}); }

 private:
  std::vector<Load>::iterator Find(ExpertId id) {
    return std::ranges::find(under_way_, id, &Load::id);
  }

  AnswerCosts costs_ = {.full = 1_MiB, .low = 512_KiB};
  std::optional<Bytes> left_;
  CallOff cancel_says_ = CallOff::kGone;
  std::vector<Load> under_way_, begun_;
  std::vector<ExpertId> promoted_;
};

}  // namespace troupe
