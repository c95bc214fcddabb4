// What an end knows of its places and its link as JSON, for the live page (docs/formats/live.md).
#pragma once

#include "base/json.h"
#include "split/end_answers.h"

namespace troupe {

Json RecordOf(const EndState& state);

}  // namespace troupe
