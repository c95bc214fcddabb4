// What an answer still has before its first token in the place where it is: from what that place
// tells of its run, and what is measured there. Pure.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "split/flow/place_costs.h"
#include "split/flow/place_rule.h"
#include "split/token_source.h"

namespace troupe {

struct EndBatch {
  std::uint32_t sequences = 1;
  std::size_t others = 0;      // answers that hold or want one, beside those of the line
  double request_seconds = 0;  // from an answer's beginning to its end
  double read_seconds = 0;     // a token of a prompt; not 0
};

UnderWay AtTheEnd(const RunLeft& left, const EndBatch& batch, Nanos now);
// `tokens`: that it has to read there.
UnderWay InTheCloud(const RunLeft& left, std::size_t tokens, Nanos now);

// From now to its next token, where it is.
Nanos NextTokenIn(const UnderWay& there, const PlaceCosts& costs);

}  // namespace troupe
