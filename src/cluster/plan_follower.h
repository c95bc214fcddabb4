// What a node holds, and its way from there to what the plan in force says, one step at a time.
// Whom it tells, and who carries a step out, is node_core.h's.
//
// Pure: no socket, thread, clock or engine.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/leave_rule.h"
#include "cluster/plan/cluster_plan.h"
#include "cluster/plan/holding_steps.h"
#include "cluster/wire/holdings.h"
#include "expert/expert_grid.h"

namespace troupe {

class PlanFollower {
 public:
  struct Self {
    std::string node;
    ExpertGrid grid;
    std::uint32_t most_held = 0;
    std::vector<std::uint8_t> held;  // by the grid's index: at the beginning
    std::uint32_t copies = 1;        // of each expert that others must hold before it may rest
  };

  // The others as they are now, and what the plan says of them.
  using Others = std::function<std::vector<OtherNode>(const ClusterPlan& plan)>;

  PlanFollower(Self self, Others others);

  void Adopt(ClusterPlan plan);
  // The node is to go: once a plan leaves it out, it lets go what others hold, or none is to hold.
  void Drain() { draining_ = true; }
  // Sharing has not been worth it for long. What the plan gives this node and its own users
  // activate less than others gives its slot to the cache, where others hold it, until that is
  // called with nothing. `use`: how often each was used lately, by the grid's index.
  void Rest(std::vector<double> use);
  // Experts of the plan that have given their slots to the cache: now, and ever.
  std::size_t resting() const;
  std::uint64_t rested() const { return rested_; }
  // How many experts a step brings.
  void SetAtOnce(std::uint32_t experts) { at_once_ = experts; }
  // To be carried out, and then told of by OnHeld; nothing while one is under way.
  std::optional<HoldingStep> TakeStep();
  // The step is done, or could not be: what is held now.
  void OnHeld(std::vector<std::uint8_t> held, bool as_planned);
  // Whether a step that could not be done is to be tried again.
  bool OnTime(Nanos now);

  const std::optional<ClusterPlan>& plan() const { return plan_; }
  bool draining() const { return draining_; }
  const std::vector<std::uint8_t>& held() const { return held_; }
  // Nothing is left to be done for the plan.
  bool settled() const { return plan_ && !carrying_ && !Step() && HoldsAsPlanned(); }
  // As peers are to be told: what is about to go is not among it.
  PeerHoldings Holdings() const;
  std::uint64_t sequence() const { return sequence_; }  // of the holdings
  std::uint64_t epoch() const { return plan_ ? plan_->epoch : 0; }

 private:
  std::optional<HoldingStep> Step() const;
  std::optional<HoldingStep> DrainStep(const std::function<bool(ExpertId)>& may_go) const;
  // A plan that gives it more than it can hold has no next step, and is not carried out.
  bool HoldsAsPlanned() const;
  bool IsLittleUsed(ExpertId id) const { return use_[self_.grid.Index(id)] < usual_use_; }
  // What it is to hold now.
  ClusterPlan::Node Wanted(const ClusterPlan::Node& planned,
                           const std::function<bool(ExpertId)>& may_rest) const;
  std::optional<HoldingStep> RestStep(const ClusterPlan::Node& wanted,
                                      const std::function<bool(ExpertId)>& may_rest) const;
  bool Holds(ExpertId id) const { return held_[self_.grid.Index(id)] != 0; }

  const Self self_;
  const Others others_;
  std::vector<std::uint8_t> held_;
  std::uint64_t sequence_ = 0;
  std::optional<ClusterPlan> plan_;
  bool draining_ = false;
  std::uint32_t at_once_ = HoldingFacts().at_once;
  std::vector<double> use_;          // empty: all that is planned is to be held
  double usual_use_ = 0;             // of an expert
  std::vector<std::uint8_t> rests_;  // by the grid's index
  std::uint64_t rested_ = 0;
  bool carrying_ = false;
  std::uint64_t carried_of_ = 0;  // the epoch of the plan whose step that is
  bool stuck_ = false;            // the plan's next step could not be done
  std::optional<Nanos> retry_at_;
};

}  // namespace troupe
