// Any eviction policy, and the time that its decisions take: policies hold no clock themselves.
#pragma once

#include <memory>
#include <utility>

#include "base/clock.h"
#include "expert/cache/eviction_policy.h"

namespace troupe {

class TimedPolicy final : public EvictionPolicy {
 private:
  template <typename Decide>
  auto Timed(Decide decide) {
    struct Stop {
      TimedPolicy& policy;
      Nanos start;
      ~Stop() { policy.spent_ += policy.clock_.Now() - start; }
    } stop{*this, clock_.Now()};
    return decide();
  }

 public:
  // The clock must outlive it.
  TimedPolicy(std::unique_ptr<EvictionPolicy> policy, const Clock& clock)
      : policy_(std::move(policy)), clock_(clock) {}

  Nanos spent() const { return spent_; }

  std::string_view name() const override { return policy_->name(); }
  void OnAsked(ExpertId id, std::span<const Asker> askers) override {
    policy_->OnAsked(id, askers);
  }
  bool wants_scores() const override { return policy_->wants_scores(); }
  void OnScored(std::uint32_t layer, std::span<const float> scores) override {
    Timed([&] { policy_->OnScored(layer, scores); });
  }
  void OnAdmitted(ExpertId id) override { policy_->OnAdmitted(id); }
  void OnEvicted(ExpertId id) override { policy_->OnEvicted(id); }
  void OnAbandoned(ExpertId id) override { policy_->OnAbandoned(id); }
  std::size_t Choose(std::span<const ExpertId> candidates) override {
    return Timed([&] { return policy_->Choose(candidates); });
  }
  std::uint64_t shielded() const override { return policy_->shielded(); }
  bool keeps_order() const override { return policy_->keeps_order(); }
  std::optional<ExpertId> FirstToGo(std::optional<std::uint32_t> layer,
                                    std::span<const std::uint8_t> evictable) override {
    return Timed([&] { return policy_->FirstToGo(layer, evictable); });
  }

 private:
  std::unique_ptr<EvictionPolicy> policy_;
  const Clock& clock_;
  Nanos spent_ = 0;
};

}  // namespace troupe
