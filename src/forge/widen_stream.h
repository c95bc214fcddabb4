// Widens a model's residual stream by elements that are zero, and with it the rows of nearly all
// its matrices: the same outputs and the same routing, from rows long enough for the types with
// blocks of 256. A small trained model can so be measured in those types, at the error that each of
// their groups makes in a large one.
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/status.h"
#include "gguf/reader.h"
#include "model/byte_progress.h"

namespace troupe {

// `factor` is a power of 4: the norms' mean square falls by it, and its root has to be exact.
// Refuses families and types of norms for which it does not know where the stream goes. Returns the
// size of the file written.
Result<Bytes> WidenStream(const GgufModel& model, std::uint32_t factor, const std::string& path,
                          const ByteProgress& progress);

}  // namespace troupe
