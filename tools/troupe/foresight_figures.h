// How well it was foreseen which experts have to be loaded (troupe::Foresight, and what came of
// chances, JudgedChances), as records and lines of figures have it.
#pragma once

#include <troupe/foresight.h>
#include <troupe/pass_time.h>

#include <string>

#include "expert/forecast/judged_chances.h"
#include "troupe/json_record.h"

namespace troupe {

Json ToJson(const Foresight& foresight);
Json ToJson(const PassTime& time);

// "of the experts that had to be loaded 61.0 % were predicted, 12.0 % in time";
// nothing of what has no figure.
std::string ForesightFigures(const Foresight& foresight, std::uint64_t loads_ahead,
                             std::uint64_t asked_for);

// A line for each distance from which something was guessed.
std::string ForesightByDistance(const Foresight& foresight);

// Of each distance the misses, the recall at three precisions, and the histogram that they are of.
Json ToJson(const JudgedChances& chances);

// "misses of the same token predicted, % at a precision of 70, 60, 50 %: 1 layer 76.0, 84.0, 90.0;
// 2 layers 70.1, ...": how many layers ahead. The next token's in a line of its own; nothing of
// what has no figure. Each line follows a line's end.
std::string RecallFigures(const JudgedChances& chances);

}  // namespace troupe
