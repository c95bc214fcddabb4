// How well it was foreseen which experts have to be loaded (troupe::Foresight), as records and
// lines of figures have it.
#pragma once

#include <troupe/foresight.h>
#include <troupe/pass_time.h>

#include <string>

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

}  // namespace troupe
