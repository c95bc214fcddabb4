// The program's own files in memory: its code and the libraries that it was linked with.
#pragma once

#include "base/bytes.h"

namespace troupe {

// Has every page of them mapped, and says how many bytes that is. How many are mapped otherwise the
// kernel decides: a fault maps what the page cache has of the file nearby, from Linux 6.18 on all
// of a large folio, so that the same command held 12 MiB of them or 23. A plan that is made
// afterwards counts them all, and the kernel cannot add any. Zero in a sanitizer's build, whose
// code is many times as large and proves no budget.
Bytes MapProgramFiles();
// What it said last; zero where nobody has called it.
Bytes MappedProgramFiles();

}  // namespace troupe
