// What an answer takes on this machine alone, by what its batch has measured and by who is before
// it. Pure.
#pragma once

#include <troupe/model.h>
#include <troupe/request.h>

#include <cstddef>
#include <optional>

#include "runtime/batch_loop.h"
#include "split/flow/place_costs.h"

namespace troupe {

struct OwnConditions {
  bool exact_only = false;  // all answers are exact, though the model was opened to lose quality
  double power = 1;         // where it is short a second of this device counts for more
  std::size_t ahead = 0;    // tokens of prompts that are to be read here before it
  std::size_t runs = 0;     // answers here, also those that the batch does not know yet
};

// `read`: tokens of its prompt, of which more take less each. Absent: not measured yet.
std::optional<PlaceCosts> OwnCostsOf(BatchCounters counters, const Plan& plan, std::size_t read,
                                     const OwnConditions& conditions);

// Of a text of nobody's by which a machine measures itself before anybody has asked it.
constexpr std::size_t kMeasuredPrompt = 32, kMeasuredAnswer = 4;
Request RequestToMeasureBy(std::size_t vocabulary);

}  // namespace troupe
