// std::mutex with Clang's thread-safety annotations, so that "guarded by" is checked by a
// compiler and not by a reader. GCC sees plain classes.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "base/clock.h"

#if defined(__clang__)
#define TROUPE_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define TROUPE_THREAD_ATTRIBUTE(x)
#endif

#define TROUPE_CAPABILITY(x) TROUPE_THREAD_ATTRIBUTE(capability(x))
#define TROUPE_SCOPED_CAPABILITY TROUPE_THREAD_ATTRIBUTE(scoped_lockable)
#define TROUPE_GUARDED_BY(x) TROUPE_THREAD_ATTRIBUTE(guarded_by(x))
#define TROUPE_REQUIRES(...) TROUPE_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define TROUPE_ACQUIRE(...) TROUPE_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define TROUPE_RELEASE(...) TROUPE_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define TROUPE_EXCLUDES(...) TROUPE_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define TROUPE_NO_THREAD_SAFETY_ANALYSIS TROUPE_THREAD_ATTRIBUTE(no_thread_safety_analysis)

namespace troupe {

class TROUPE_CAPABILITY("mutex") Mutex {
 public:
  void Lock() TROUPE_ACQUIRE() { mu_.lock(); }
  void Unlock() TROUPE_RELEASE() { mu_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mu_;
};

class TROUPE_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mu) TROUPE_ACQUIRE(mu) : mu_(mu) { mu_.Lock(); }
  ~MutexLock() TROUPE_RELEASE() { mu_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mu_;
};

class CondVar {
 public:
  // Waits until notified, maybe for nothing: callers loop over their own condition.
  void Wait(Mutex& mu) TROUPE_REQUIRES(mu) TROUPE_NO_THREAD_SAFETY_ANALYSIS {
    std::unique_lock<std::mutex> lock(mu.mu_, std::adopt_lock);
    cv_.wait(lock);
    lock.release();
  }
  // The same, but no longer than `wait`; the caller's own clock says whether that has passed.
  void WaitFor(Mutex& mu, Nanos wait) TROUPE_REQUIRES(mu) TROUPE_NO_THREAD_SAFETY_ANALYSIS {
    constexpr Nanos kHour = 3'600'000'000'000;  // now + wait must not wrap
    std::unique_lock<std::mutex> lock(mu.mu_, std::adopt_lock);
    cv_.wait_for(lock, std::chrono::nanoseconds(std::min(wait, kHour)));
    lock.release();
  }
  void NotifyOne() { cv_.notify_one(); }
  void NotifyAll() { cv_.notify_all(); }

 private:
  std::condition_variable cv_;
};

}  // namespace troupe
