// What the operating system says this process uses, and how it gets back what is free.
#pragma once

#include "base/bytes.h"

namespace troupe {

// Zero where the system does not tell.
Bytes ResidentMemory();      // now
Bytes PeakResidentMemory();  // at most, since the process began

// Of the memory that a process holds, what is its own (heap, stacks, buffers) and what are pages of
// files (code, libraries).
struct ResidentParts {
  Bytes own, files;
};
ResidentParts ResidentMemoryParts();

// What a plan counts as held: `parts` in coarse steps, as the same command shall make the same
// plan. Where the program has not mapped its files (program_files.h) the kernel has, by what it
// keeps of them (9 to 15 MiB were seen of one command): no less is counted than what a run comes to
// use.
// `mapped`: all of the program's files, so that only what it has opened since can grow; zero: it
// has not mapped them.
Bytes HeldForPlan(const ResidentParts& parts, Bytes mapped);

// The system gets the pages back that the allocator holds and nobody uses. How many bytes fewer are
// resident; others may allocate meanwhile, so it can be zero.
Bytes ReturnFreeMemory();

}  // namespace troupe
