// What a layer has asked for and was not given yet: its misses in the order in which they are to be
// given, those of them without a slot, what is ready, and what another place computes. Bookkeeping;
// what happens next to any of it miss_flow.h decides.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "expert/flow/hand_out.h"
#include "expert/flow/miss_event.h"

namespace troupe {

using DemandId = std::uint64_t;

// Who asks: the rows of the pass under way; a peer's, which are in no pass of ours; or nobody's:
// for experts that are only to be held, whose loads let all others go first, or that the cache
// begins with, before anybody computes.
enum class DemandOf { kPass, kPeer, kHolding, kFilling };

// A miss until it is given.
struct WaitingMiss {
  MissEvent event;
  ExpertCopy least = ExpertCopy::kFull;  // that may answer
  ExpertCopy load = ExpertCopy::kFull;   // that is loaded for it
  double weight = 0;                     // the largest that a row gives it
  Bytes left;                            // to come of the load that it joined
  Nanos asked = 0;
  Nanos stall_before = 0;
};

// A miss that is not loaded, as one of the places of AnswerCosts computes it.
struct AnsweredElsewhere {
  std::uint32_t expert = 0;
  std::uint32_t place = 0;
  double load_seconds = 0;  // that loading it alone would take; 0: not measured

  bool operator==(const AnsweredElsewhere&) const = default;
};

// What the planner expected of the demand's misses.
struct PlannedMisses {
  std::uint32_t misses = 0, elsewhere = 0;
  bool had_choice = false;  // some of them could have been computed elsewhere
  double seconds = 0, all_local_seconds = 0;
};

struct OpenDemand {
  DemandId id = 0;
  std::uint32_t layer = 0;
  DemandOf whose = DemandOf::kPass;
  std::vector<WaitingMiss> waiting;
  std::vector<ExpertId> unplaced;  // of them without a slot
  std::vector<AnsweredElsewhere> elsewhere;
  std::vector<WaitingMiss> sent;  // the same ones, in the same order
  PlannedMisses planned;
  HandOut hand_out;
  std::vector<MissEvent> given_misses;  // among those given last
  Status error;
  bool out_of_turn = false;  // the next one in order can only come after another is given

  // An index into `waiting`; its size if the expert is not among them.
  std::size_t Find(ExpertId expert) const {
    return static_cast<std::size_t>(
        std::ranges::find(waiting, expert, [](const WaitingMiss& w) { return w.event.id; }) -
        waiting.begin());
  }
  bool IsDone() const { return waiting.empty() && hand_out.ready() == 0; }

  void Reset() {
    waiting.clear();
    unplaced.clear();
    elsewhere.clear();
    sent.clear();
    planned = {};
    hand_out.Forget();
    given_misses.clear();
    error = OkStatus();
    out_of_turn = false;
  }
};

}  // namespace troupe
