// Reads every expert of a container and compares it with its checksum, which loading does only for
// those that are used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "store/model_fingerprint.h"

namespace troupe {

struct ContainerVerdict {
  std::uint64_t experts = 0;         // that were compared
  std::vector<std::string> damaged;  // "layer 3, expert 5", "layer 3, expert 5 (low copy)"
  bool of_model = true;              // it says that it was made from this model
};

// An error: its index is damaged, or it cannot be read.
Result<ContainerVerdict> VerifyContainer(
    const std::string& path, const ModelFingerprint& model, std::size_t threads,
    const std::function<bool(Bytes done, Bytes total)>& go_on = {});

}  // namespace troupe
