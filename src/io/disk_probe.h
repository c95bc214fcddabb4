// Measures how fast a file's medium reads random pieces of several sizes, one at a time and with
// the queue full. The cost of a missing expert is estimated from this elsewhere.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/status.h"
#include "io/async_reader.h"
#include "io/direct_file.h"

namespace troupe {

struct DiskSpeed {
  Bytes request;
  double lone_seconds = 0;      // median over reads with nothing else under way
  double bytes_per_second = 0;  // with the reader's queue full (or all of the memory under way)
};

struct ProbeOptions {
  Bytes most = 256_MiB;   // to read in total
  Bytes memory = 32_MiB;  // to read into, at most 32 MiB; 4 KiB at least are taken
  std::uint64_t seed = 1;
};

// For 4 KiB, 64 KiB, 256 KiB, 1 MiB and 4 MiB; sizes that the file or the memory does not hold are
// left out. Of a
// file that is not direct() this measures the page cache. Nothing else may be under way.
Result<std::vector<DiskSpeed>> ProbeDisk(AsyncReader& reader, const DirectFile& file,
                                         const Clock& clock, const ProbeOptions& options = {});

}  // namespace troupe
