// Whether a new plan takes the place of the one in force, and why: because that one cannot stay, or
// because moving pays by the paper's Eq. 4. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "cluster/plan/cluster_plan.h"
#include "cluster/plan/plan_maker.h"
#include "placement/migration.h"

namespace troupe {

struct Adoption {
  enum class Why {
    kFirst,          // there was none
    kOtherNodes,     // other ones take part
    kTooMuch,        // a node is to hold more than its memory can
    kCopiesLacking,  // fewer copies are held than the new plan would have
    kPays,           // by Eq. 4
    kDoesNotPay,
    kSame,  // it says the same
  };

  Why why = Why::kSame;
  std::string node;                 // of kTooMuch
  std::uint64_t lacking = 0;        // copies that are demanded and not held, by the plan in force
  std::uint64_t still_lacking = 0;  // by the new one
  MigrationDecision eq4;            // of kPays and kDoesNotPay

  bool adopt() const { return why != Why::kDoesNotPay && why != Why::kSame; }
};

// For people, with the terms of Eq. 4 where it decided.
std::string ToString(const Adoption& adoption);

// `from` null: there is none.
Adoption DecideAdoption(const PlanFacts& facts, const ClusterPlan* from, const ClusterPlan& to,
                        double seconds_per_remote_call);

}  // namespace troupe
