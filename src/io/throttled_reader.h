// Puts a link of a given speed before another reader, to simulate a slower medium (PCIe 3, UFS, a
// slow card) on a faster one. Bytes pass one request after the other at the link's rate, and each
// request also takes the link's latency. A request is answered when both the link and
// the reader behind it are done with it.
#pragma once

#include <memory>

#include "base/clock.h"
#include "io/async_reader.h"
#include "io/link_speed.h"

namespace troupe {

// The clock must outlive the reader. With any other clock than MonotonicClock nothing
// waits for the link: Collect returns what the link would have passed by the clock's time.
std::unique_ptr<AsyncReader> MakeThrottledReader(std::unique_ptr<AsyncReader> behind,
                                                 const LinkSpeed& link, const Clock& clock);

}  // namespace troupe
