// Writes a GGUF file (version 3): declare all tensors, then append their bytes in the same order,
// whole or in pieces. The file appears under its name when Finish succeeds, and not otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "gguf/metadata.h"
#include "gguf/tensor_info.h"
#include "io/atomic_file.h"

namespace troupe {

class GgufWriter {
 public:
  // Tensor data is aligned to general.alignment of the metadata, or to 32 bytes.
  static Result<GgufWriter> Create(std::string path, const Metadata& metadata,
                                   std::span<const TensorSpec> tensors);

  // Appends to the named tensor, which must be the next one in order; the name catches a caller
  // that has lost its place. A tensor is complete when its declared size has been given.
  Status Append(std::string_view tensor, std::span<const std::byte> bytes);

  // Ends writing; fails if a tensor lacks bytes. The result is where this process can read the file
  // until it has its name.
  Result<std::string> Seal();
  // Gives a sealed file its name.
  Status Publish() { return file_.Commit(); }
  Status Finish();  // both

  Bytes total_bytes() const { return total_; }  // of the finished file

 private:
  GgufWriter(AtomicFileWriter file, std::vector<TensorInfo> tensors, std::uint64_t alignment,
             Bytes total);

  Status Pad();

  AtomicFileWriter file_;
  std::vector<TensorInfo> tensors_;
  std::uint64_t alignment_;
  Bytes total_;
  std::size_t current_ = 0;  // whose turn it is
  std::uint64_t given_ = 0;  // its bytes so far
};

}  // namespace troupe
