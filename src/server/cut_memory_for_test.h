// What messages of cut prompts still hold, once whoever lets go of them has had time to: an answer
// ends for its client before its last message is given back.
#pragma once

#include <chrono>
#include <thread>

#include "base/bytes.h"
#include "server/cut_host.h"

namespace troupe {

inline Bytes LeftWaiting(const CutHost& cuts) {
  for (int i = 0; i < 1000 && cuts.waiting_memory().taken() > Bytes(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return cuts.waiting_memory().taken();
}

}  // namespace troupe
