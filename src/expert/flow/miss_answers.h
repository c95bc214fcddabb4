// Puts a demand's misses to the planner of misses (miss_planner.h) and keeps what it decides: the
// order in which they are loaded, in which copy, and which of them another place computes. Beside
// each miss stands its answer for --explain, and each decision is counted. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "expert/flow/answer_costs.h"
#include "expert/flow/miss_planner.h"
#include "expert/flow/open_demand.h"

namespace troupe {

struct MissAnswerRules {
  MissOrder order = MissOrder::kRows;
  // Decisions may not depend on which load ends first: the order is the same whether a miss is on
  // its way or not, and low copies are loaded wherever they may answer.
  bool repeatable = false;
};

class MissAnswers {
 public:
  explicit MissAnswers(MissAnswerRules rules) : rules_(rules) {}

  // Of everything that the demand waits for. Sorts `waiting` by the order of loading, fills
  // `unplaced`, and moves to `elsewhere` what a place computes. `left` of each miss says what is to
  // come of the load that it joined.
  void Decide(OpenDemand& demand, AnswerCosts costs);

  // What was to be computed elsewhere is loaded after all: it waits behind all others.
  void TakeBack(OpenDemand& demand, std::uint32_t expert);
  // What waits for its load is computed elsewhere after all.
  void GiveAway(OpenDemand& demand, std::uint32_t expert);

  const AnswerUse& decided() const { return decided_; }

 private:
  Miss FactsOf(const WaitingMiss& miss, const AnswerCosts& costs) const;
  std::span<const std::uint32_t> PlacesOf(std::uint32_t expert, const AnswerCosts& costs) const;
  void Obey(OpenDemand& demand, const MissPlan& plan, const MediumState& medium);
  void Count(MissAnswer answer);
  void Uncount(MissAnswer answer);

  MissAnswerRules rules_;
  bool low_as_asked_ = true;  // low copies are loaded wherever they may answer
  MissPlanner planner_;
  std::vector<std::uint32_t> every_place_;  // 0, 1, …
  std::vector<Miss> misses_;
  std::vector<WaitingMiss> sorted_;
  AnswerUse decided_;
};

}  // namespace troupe
