// Compares a model that was got with the checksums that its hub or registry has published.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace troupe {

struct PulledVerdict {
  std::string name;                  // of the model
  std::uint64_t files = 0;           // that were compared
  std::vector<std::string> damaged;  // their paths
};

// Nothing if `path` is no file of a model that was got with checksums. `go_on` gets bytes read; its
// no ends with kCancelled.
Result<std::optional<PulledVerdict>> CheckPulled(
    const std::string& path, const std::function<bool(Bytes done, Bytes total)>& go_on = {});

}  // namespace troupe
