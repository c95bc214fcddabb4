// What an answer takes on this machine alone, by what its batch has measured and by who is before
// it. Pure.
#pragma once

#include <troupe/model.h>
#include <troupe/request.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

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

// Texts of nobody's by which a machine measures itself. Passes over a short prompt and over a long
// one say how the time grows with the rows: of one alone a line through zero would be drawn.
constexpr std::size_t kShortPrompt = 32, kLongPrompt = 256, kMeasuredAnswer = 4;
// Their tokens, in order: the first text warms the cache of experts, and tells nothing.
std::vector<std::size_t> PromptsToMeasureBy(const Plan& plan);
// `text`: each has a number of its own, so that none is found in the prefix cache.
Request RequestToMeasureBy(std::size_t vocabulary, std::size_t tokens, std::uint64_t text);

}  // namespace troupe
