// Widens the experts of a model by neurons that are zero: the same outputs and the same routing
// from more bytes. A small trained model so has the locality of a real one at the size of a real
// one, which random weights do not have.
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/status.h"
#include "gguf/reader.h"
#include "model/byte_progress.h"

namespace troupe {

// Routed experts become `factor` times as wide, and shared ones with them in families that have one
// width for both. Returns the size of the file written.
Result<Bytes> WidenExperts(const GgufModel& model, std::uint32_t factor, const std::string& path,
                           const ByteProgress& progress);

}  // namespace troupe
