// A grammar that waits for a text: an answer is free until it contains a trigger, from there on it
// follows the grammar, and when that has ended it is free again. For tool calls, which a model may
// make or not.
#pragma once

#include <span>
#include <string>

#include "base/status.h"
#include "text/grammar/grammar.h"

namespace troupe {

struct TriggerUse {
  bool repeats = true;         // after the grammar's text the next trigger may come; else the end
  bool may_be_missing = true;  // the answer may end without one
};

// What follows an occurrence of a trigger is a text of `grammar`. An answer may end where it is
// free, if triggers may be missing, and where the grammar may end. kInvalidArgument without
// triggers, or if one is empty or not valid UTF-8.
Result<Grammar> AfterTriggers(Grammar grammar, std::span<const std::string> triggers,
                              TriggerUse use = {});

// Any text up to the first of that mark, with it.
Grammar TextUntil(const std::string& mark);

}  // namespace troupe
