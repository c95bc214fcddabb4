// Measures what a cost model holds: memory by reading it, the disk by random reads of a file on it,
// experts by computing some of a shape as a layer does. Each takes a few tenths of a second, unless
// one read or one product takes longer than that. Nothing else should run meanwhile. A measurement
// holds no more than the memory it is given; with less than kProbeMemory it may be too good, as
// processors cache a part of what it reads.
#pragma once

#include "base/clock.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "expert/flow/cost_model.h"
#include "io/async_reader.h"
#include "io/direct_file.h"
#include "model/expert_layout.h"

namespace troupe {

inline constexpr Bytes kProbeMemory = 256_MiB;

// What a budget leaves to measuring: it holds for this process, too.
Bytes ProbeMemoryWithin(Bytes budget);

// Bytes a second, all threads together.
Result<double> ProbeMemory(ThreadPool& pool, Bytes memory = kProbeMemory);

Result<DiskCost> ProbeDiskCost(const ReaderOptions& options, const DirectFile& file,
                               const Clock& clock, Bytes memory = kProbeMemory);

struct ExpertSeconds {
  double first_row = 0;
  double further_row = 0;
};

// Takes at least two rounds of 1, 2, 8 and 32 rows, and more of them up to `seconds` in all.
Result<ExpertSeconds> ProbeExpert(const ExpertLayout& layout, ThreadPool& pool, const Clock& clock,
                                  double seconds, Bytes memory = kProbeMemory);

}  // namespace troupe
