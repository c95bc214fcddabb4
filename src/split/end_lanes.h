// Which sides of an end and its cloud are at work on answers now. The end is also while it guesses
// for the cloud, or computes the first layers of a prompt that is cut.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "split/flow/lane_times.h"
#include "split/split_answer.h"

namespace troupe {

inline LaneTimes::Lanes LanesOf(const std::vector<std::shared_ptr<SplitAnswer>>& answers,
                                bool end_works) {
  LaneTimes::Lanes busy = {end_works, false};
  for (const auto& answer : answers) {
    for (const Side side : {Side::kEnd, Side::kCloud}) {
      busy[static_cast<std::size_t>(side)] |= answer->flow().runs(side);
    }
  }
  return busy;
}

}  // namespace troupe
