// What it takes this machine to write a row by a code and to read it again, measured.
#pragma once

#include <memory>

#include "base/clock.h"
#include "base/status.h"
#include "split/codec/state_codec.h"

namespace troupe {

struct CodeCost {
  double encode_seconds = 0, decode_seconds = 0;  // of a row
};

// Of some rows at once, by the best of a few times. A few milliseconds for a wide row of a high
// rank.
Result<CodeCost> MeasureCode(const std::shared_ptr<const CutBasis>& basis, const StateCode& code,
                             const Clock& clock);

}  // namespace troupe
