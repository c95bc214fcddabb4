// What an end tells of itself: sums of its answers, and what it knows now.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "split/cut_desk.h"
#include "split/device_watch.h"
#include "split/draft_desk.h"
#include "split/flow/answer_flow.h"
#include "split/flow/cloud_watch.h"
#include "split/flow/place_costs.h"
#include "split/memory_watch.h"
#include "split/split_answer.h"

namespace troupe {

// Of answers that were chosen where they began: what they were expected to take, and took.
struct PredictedSums {
  std::uint64_t answers = 0;
  double expected_seconds = 0, seconds = 0;
};

// Sums, and what is known now.
struct EndState {
  CloudWatch::State cloud = CloudWatch::State::kUnknown;
  std::array<std::uint64_t, 2> begun = {};  // answers, by the place where they began
  FlowCounts flow;                          // of answers that are over
  std::array<PredictedSums, 2> predicted;   // by place
  PredictedSums predicted_cuts;             // of answers behind cut prompts
  PredictedSums predicted_drafts;           // of answers that were to have drafts
  std::size_t under_way = 0;
  // While answers were under way: with work for them on that side, and with none.
  std::array<double, 2> busy_seconds = {}, idle_seconds = {};
  std::uint64_t bytes_sent = 0, bytes_received = 0;  // of bodies, to and from the cloud
  double round_trip_seconds = 0;                     // of the last hello, with its connection
  std::optional<PlaceCosts> end, cloud_costs, with_drafts;  // as measured, whatever power is left
  DraftCounts drafts;
  DraftPlan pace;                            // of drafts, now
  double draft_odds = 0;                     // that a guess is right whose forerunners were
  double draft_taken = 1, draft_factor = 1;  // by which drafts are planned (draft_pace.h)
  std::optional<CutState> cuts;              // absent: no prompt is cut
  std::optional<DeviceReport> device;        // of the last look
  std::optional<MemoryState> memory;         // absent: the cache does not follow it
};

// An answer that is over, among those of its kind.
void CountPredicted(const Predicted& predicted, EndState& state);

}  // namespace troupe
