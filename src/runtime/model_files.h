// The files that opening a model reads, as they are now: told again later, they say whether one was
// replaced, changed, added or removed since then.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/file.h"
#include "runtime/engine_plan.h"

namespace troupe {

struct ModelFile {
  std::string path;
  std::optional<FileIdentity> identity;  // absent: there is none

  bool operator==(const ModelFile&) const = default;
};

// All parts of a split model, and what belongs to the model: packed experts, profile, and for
// answers that are not exact what these go by.
std::vector<ModelFile> LookAtModelFiles(const std::string& path, const OffloadOptions& options);

}  // namespace troupe
