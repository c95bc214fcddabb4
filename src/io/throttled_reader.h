// Puts a link of a given speed before another reader, so that any medium (PCIe 3, UFS, a slow card)
// can be stood in for on a faster one: bytes pass one request after the other at the link's rate,
// and each request takes the link's latency besides. A request is answered when both the link and
// the reader behind it are done with it.
#pragma once

#include <memory>

#include "base/clock.h"
#include "io/async_reader.h"
#include "io/link_speed.h"

namespace troupe {

// The clock must outlive the reader. With any but the MonotonicClock nothing ever waits for the
// link: Collect gives what it would have let through by the clock's time.
std::unique_ptr<AsyncReader> MakeThrottledReader(std::unique_ptr<AsyncReader> behind,
                                                 const LinkSpeed& link, const Clock& clock);

}  // namespace troupe
