// The bytes that stand before the tensor data of a GGUF file, and where the tensors go: one after
// the other in the order given, the header and each of them padded to the alignment. Pure; writer.h
// adds the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "gguf/metadata.h"
#include "gguf/tensor_info.h"

namespace troupe {

struct EncodedHeader {
  std::vector<std::byte> bytes;  // without the padding up to where tensor data begins
  std::vector<TensorInfo> tensors;
  std::uint64_t alignment = 0;
  Bytes total;  // of the file with all its tensors
};

// Refuses what ParseGguf would refuse to read.
Result<EncodedHeader> EncodeHeader(const Metadata& metadata, std::span<const TensorSpec> specs);

}  // namespace troupe
