// The fields of a request against repetition and against the likeliest tokens, DRY and XTC, as
// llama-server names them. What is out of its range is refused by its place.
#pragma once

#include <troupe/request.h>

#include "base/json_value.h"

namespace troupe {

// dry_multiplier, dry_base, dry_allowed_length, dry_penalty_last_n (-1: all tokens, 0: DRY is off),
// dry_sequence_breakers; xtc_probability, xtc_threshold.
void ReadRepetition(const JsonValue& body, Sampling& sampling);

}  // namespace troupe
