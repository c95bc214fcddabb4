// A thread that works beside others which are more urgent: where they want the same processor it
// gets a part, and all of it where nobody else does. And what it did get.
#pragma once

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

#include "base/clock.h"

namespace troupe {

// Each step weighs a thread 1.25 times as little, from where its process began, who may have been
// started with little (nice). The system may refuse: then it stays as it is.
inline void LowerThreadPriority(int steps) {
  const auto thread = static_cast<id_t>(::syscall(SYS_gettid));
  (void)::setpriority(PRIO_PROCESS, thread, ::getpriority(PRIO_PROCESS, thread) + steps);
}

// That the calling thread has had of processors.
inline Nanos ThreadProcessorTime() {
  timespec time = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return Nanos{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace troupe
