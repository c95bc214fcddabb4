// What every tool has to mind that makes a new model file of an old one.
#pragma once

#include <string>

#include "base/status.h"
#include "gguf/metadata.h"
#include "gguf/reader.h"

namespace troupe {

// Fails if `path` is one of the files that are to be read.
Status CheckNotInPlace(const GgufModel& model, const std::string& path);

// The model's metadata without what says that it came in several parts.
Metadata MetadataAsOneFile(const GgufModel& model);

}  // namespace troupe
