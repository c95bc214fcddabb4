// Whether weights that are loaded are those that somebody recorded. weight_loader.h shows each
// matrix's bytes as they pass; who implements this knows what was recorded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "gguf/tensor_info.h"

namespace troupe {

// One thread at a time.
class MatrixCheck {
 public:
  virtual ~MatrixCheck() = default;
  virtual void Add(std::span<const std::byte> bytes) = 0;  // of the matrix, in order
  virtual Status Finish() = 0;                             // the error names file and tensor
};

class WeightChecks {
 public:
  virtual ~WeightChecks() = default;
  // Nothing where nothing was recorded. Thread-safe.
  virtual std::unique_ptr<MatrixCheck> Begin(const TensorInfo& tensor,
                                             std::uint64_t matrix) const = 0;
};

}  // namespace troupe
