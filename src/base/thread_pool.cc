#include "base/thread_pool.h"

#include <sched.h>

#include <system_error>

#include "base/check.h"
#include "base/log.h"
#include "base/thread_share.h"

namespace troupe {
namespace {

// About 100 microseconds of spinning: longer than the serial gaps between two regions of a token,
// shorter than anybody would notice on a battery. bench: base/thread_pool_bench.
constexpr int kSpinsBeforeSleep = 4000;

inline void CpuRelax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

ThreadPool::ThreadPool(std::size_t threads, int lower_priority) {
  TROUPE_CHECK(threads >= 1);
  workers_.reserve(threads - 1);
  for (std::size_t t = 1; t < threads; ++t) {
    try {
      workers_.emplace_back([this, t, lower_priority] {
        if (lower_priority > 0) LowerThreadPriority(lower_priority);
        WorkerLoop(t);
      });
    } catch (const std::system_error& error) {
      LogWarning("only {} of {} threads could be started: {}", t, threads, error.what());
      break;
    }
  }
}

ThreadPool::~ThreadPool() {
  stop_.store(true);
  generation_.fetch_add(2);  // still closed, but another value: sleepers look up
  generation_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::Run(std::size_t tasks, TaskRef run) {
  if (workers_.empty() || tasks <= 1) {
    for (std::size_t task = 0; task < tasks; ++task) {
      if (task > 0) ServeOthers();
      run(task, 0);
    }
    return;
  }
  region_ = &run;
  tasks_ = tasks;
  next_task_.store(0, std::memory_order_relaxed);
  // Sequentially consistent with the sleepers' increment: either the worker sees the new
  // generation before it sleeps, or we see the sleeper and wake it.
  generation_.fetch_add(1);
  if (sleepers_.load() > 0) generation_.notify_all();
  WorkOnRegion(0);
  // And with a worker's entry: either it sees that the region is closed, or we see it inside.
  generation_.fetch_add(1);
  for (int spins = 0; workers_inside_.load() != 0; ++spins) {
    if (spins < kSpinsBeforeSleep) {
      CpuRelax();
    } else {
      ::sched_yield();  // the worker may have lost its core; do not hold one while it waits for it
    }
  }
}

void ThreadPool::WorkOnRegion(std::size_t thread) {
  for (;;) {
    const std::size_t task = next_task_.fetch_add(1, std::memory_order_relaxed);
    if (task >= tasks_) return;
    (*region_)(task, thread);
    if (thread == 0) ServeOthers();
  }
}

void ThreadPool::WorkerLoop(std::size_t thread) {
  std::uint32_t seen = 0;  // the last region this worker was in
  for (;;) {
    std::uint32_t now = generation_.load(std::memory_order_acquire);
    for (int spins = 0; now % 2 == 0 || now == seen;
         now = generation_.load(std::memory_order_acquire)) {
      if (stop_.load(std::memory_order_relaxed)) return;
      if (++spins < kSpinsBeforeSleep) {
        CpuRelax();
        continue;
      }
      sleepers_.fetch_add(1);
      generation_.wait(now);
      sleepers_.fetch_sub(1);
      spins = 0;
    }
    workers_inside_.fetch_add(1);
    now = generation_.load();  // the region may have closed on the way here, and a next one opened
    if (now % 2 == 1) {
      seen = now;
      WorkOnRegion(thread);
    }
    workers_inside_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace troupe
