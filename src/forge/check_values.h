// Looks at every weight of a model: what can be found in a file of which nobody has recorded a
// checksum. Damage often makes a scale infinite or no number, but by no means always.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "gguf/reader.h"

namespace troupe {

// A line for each tensor, or expert of one, with a weight that is infinite or no number. `go_on`
// gets bytes read; its no ends with kCancelled.
Result<std::vector<std::string>> PartsWithoutNumbers(
    const GgufModel& model, std::size_t threads,
    const std::function<bool(Bytes done, Bytes total)>& go_on = {});

}  // namespace troupe
