// The leader's part of a node: what all nodes have told of themselves, when a plan is due, and of
// what it is to be made (plan/plan_job.h). Pure. Who leads, who is there, and what becomes of a
// plan is node_core.h's.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/face/node_options.h"
#include "cluster/plan/aged_activity.h"
#include "cluster/plan/cluster_plan.h"
#include "cluster/plan/plan_job.h"
#include "cluster/wire/report.h"

namespace troupe {

// What all nodes of a cluster share.
struct PlannerModel {
  std::string fingerprint;
  ExpertGrid grid;
  std::uint32_t first_layer = 0;
  std::uint32_t experts_per_token = 1;
  std::uint64_t expert_bytes = 1;
  std::uint64_t row_bytes = 1;  // of an answer
  bool experts_travel = false;  // from peer to peer: their checksums are known
};

class Planner {
 public:
  // A node that counts: it is here, or not away for long enough to be forgotten.
  struct Present {
    std::string name;
    std::optional<double> round_trip_seconds;  // by its link, if there is one
    std::vector<std::uint8_t> held;            // by the grid's index; empty: not known
  };

  Planner(PlannerModel model, PlannerRules rules) : model_(model), rules_(std::move(rules)) {}

  // This node leads from now on, where nodes follow `plan`, or none: those of it are waited for
  // until they have told of themselves, or are away for long enough to be forgotten.
  void Begin(Nanos now, const std::optional<ClusterPlan>& plan);
  void End() { told_.clear(); }
  void OnReport(const std::string& name, const PeerReport& report);
  // Who is there has changed: a plan after a while.
  void OnCame(Nanos now) { PlanWithin(rules_.gather, now); }
  void OnGone(Nanos now) { PlanWithin(rules_.forget_after + 1, now); }
  // Somebody wants one now.
  void PlanNow(Nanos now) { PlanWithin(0, now); }
  // None could be made, or stored.
  void TryAgain(Nanos now) { plan_at_ = now + rules_.gather; }
  // Asked again and again, it says so once. `expected`: how many nodes there are, if all have come.
  bool IsDue(Nanos now, std::size_t expected, bool has_plan);
  // Who told nothing of itself since this node leads, and is waited for before any plan is made.
  std::vector<std::string> Awaits(Nanos now) const;
  Nanos awaited_until() const { return awaited_until_; }
  // As far as it has told: who has told nothing may.
  bool MayHold(const std::string& name) const;
  bool Forgets(Nanos away) const { return away > rules_.forget_after; }

  // The next plan does without those that are not present. When one of them tells of itself again
  // it has come. Of those that the current plan does without, too, all is forgotten.
  void LeaveOut(std::span<const Present> present, const std::optional<ClusterPlan>& current);
  // Nothing: nobody has memory for experts, as far as it is known.
  std::optional<PlanJob> Job(std::span<const Present> present,
                             const std::optional<ClusterPlan>& current) const;

 private:
  struct Told {
    NodeFacts facts;
    AgedActivity activity;
    NodeMeasures measured;
    bool left_out = false;
  };

  PlanFacts FactsOf(std::span<const Present> present) const;
  // The usual one is their average: of pairs that have not measured each other, too.
  void SetLinks(std::span<const Present> present, PlanFacts& facts) const;
  LatencyModel LatencyOf(const PlanFacts& facts) const;
  double SecondsPerRemoteRow(const PlanFacts& facts) const;
  bool AllAreBack() const;
  void PlanWithin(Nanos wait, Nanos now) { plan_at_ = std::min(plan_at_, now + wait); }

  const PlannerModel model_;
  const PlannerRules rules_;
  Nanos plan_at_ = 0;
  std::set<std::string> awaited_;
  Nanos awaited_until_ = 0;
  bool tried_ = false;    // since somebody came
  bool came_ = false;     // a node has told of itself for the first time, or has other memory
  bool is_back_ = false;  // one that a plan did without has told of itself again
  std::map<std::string, Told> told_;
};

}  // namespace troupe
