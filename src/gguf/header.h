// Parses what stands before the tensor data of one GGUF file (versions 2 and 3, little-endian).
// Trusts nothing: any bytes give a header that keeps every promise below, or an error that names
// the byte. Leaves files of several parts to reader.h. Format: docs/formats/gguf.md.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "gguf/metadata.h"
#include "gguf/tensor_info.h"
#include "io/byte_source.h"

namespace troupe {

struct GgufHeader {
  std::uint32_t version = 0;
  Metadata metadata;
  std::uint32_t alignment = 0;      // a power of two
  std::uint64_t data_offset = 0;    // where tensor data begins
  std::vector<TensorInfo> tensors;  // in the file's order; inside the file, aligned, disjoint
};

Result<GgufHeader> ParseGguf(const ByteSource& source);

// The value of general.alignment, or 32 if it is absent. The writer uses this, too.
Result<std::uint32_t> AlignmentOf(const Metadata& metadata);

}  // namespace troupe
