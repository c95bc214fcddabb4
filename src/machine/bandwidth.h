// How fast the engine's threads can read memory together: the limit of decode, which reads every
// weight it uses once a token.
#pragma once

#include "base/bytes.h"
#include "base/status.h"
#include "base/thread_pool.h"

namespace troupe {

// Bytes a second, the best of a few passes over a buffer of `size`, which should be many times the
// largest cache.
Result<double> MeasureReadBandwidth(ThreadPool& pool, Bytes size);

}  // namespace troupe
