// How long ago something came: requests may be parked before anybody begins to answer them, so
// their time is not that of who answers.
#pragma once

#include <chrono>

namespace troupe {

inline double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace troupe
