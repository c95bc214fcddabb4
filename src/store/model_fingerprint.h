// Identifies a model without reading all of it, so that an experts container is only used with the
// model it was made from.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/status.h"
#include "gguf/reader.h"

namespace troupe {

struct ModelFingerprint {
  std::array<std::uint64_t, 2> words = {};
  bool operator==(const ModelFingerprint&) const = default;
};

std::string ToString(const ModelFingerprint& fingerprint);  // 32 hex digits

// A hash of all metadata, of the names, types and shapes of all tensors, of the first, middle and
// last 4 KiB of each tensor, and of the first 64 bytes of each matrix of a stack of them, so that
// an expert changed alone is seen. Neither the path nor whether the model is split counts, as long
// as the tensors come in the same order. A change of weights that leaves all samples as they are,
// is not seen.
Result<ModelFingerprint> FingerprintModel(const GgufModel& model);

}  // namespace troupe
