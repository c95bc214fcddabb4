// For tests with a driver that hangs: further calls are made only once it has come back.
#pragma once

#include <chrono>
#include <thread>

#include "gpu/driver_call.h"

namespace troupe {

inline void WaitForDriverCalls() {
  for (int i = 0; i < 60'000 && DriverCallsOut() > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace troupe
