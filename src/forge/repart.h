// Writes a model again in other files: several parts as one file, or one as several. Every tensor
// and key stays as it is, but for those that say which part a file is.
#pragma once

#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "gguf/reader.h"
#include "model/byte_progress.h"

namespace troupe {

struct RepartReport {
  std::vector<std::string> files;
  Bytes bytes;  // of all
};

// Parts with at most `part_bytes` of tensors, but at least one tensor each, named as model_output.h
// has it; 0: one file, called `path`. Refuses to write over a file that it reads.
Result<RepartReport> Repart(const GgufModel& model, const std::string& path, Bytes part_bytes,
                            const ByteProgress& progress = nullptr);

}  // namespace troupe
