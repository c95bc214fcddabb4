// Threads for parallel regions of about 50 microseconds: workers spin for a moment between regions
// before they sleep, so that a region costs well under a microsecond to start while tokens flow and
// nothing at all when they do not. The caller works too, and waits only for workers that came: one
// that sleeps while a disk is waited for does not hold up the regions in between. Tasks are handed
// out by an atomic counter: which thread runs a task is not fixed, so a task must not make its
// result depend on it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace troupe {

// A view of a callable (task, thread), valid during the call it is passed to.
class TaskRef {
 public:
  template <typename F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, TaskRef>)
      TaskRef(F&& f)  // NOLINT: lambdas convert at the call
      : object_(const_cast<void*>(static_cast<const void*>(&f))),
        call_([](void* object, std::size_t task, std::size_t thread) {
          (*static_cast<std::remove_reference_t<F>*>(object))(task, thread);
        }) {}
  void operator()(std::size_t task, std::size_t thread) const { call_(object_, task, thread); }

 private:
  void* object_;
  void (*call_)(void*, std::size_t, std::size_t);
};

class ThreadPool {
 public:
  // `threads` counts the caller: ThreadPool(1) starts none. Where the system refuses a thread the
  // pool has those that could be started, and says so in the log.
  // The workers have that much less priority than others (thread_share.h).
  explicit ThreadPool(std::size_t threads, int lower_priority = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  std::size_t threads() const { return workers_.size() + 1; }

  // Calls run(task, thread) for every task in [0, tasks) and returns when all are done; thread is
  // in [0, threads()). Not reentrant: one region at a time, from one thread.
  void Run(std::size_t tasks, TaskRef run);

  // What a caller of Run does between two of its own tasks: small work that waits for nobody, as
  // taking from a disk what it has read. It must not call Run, and knows itself how often it is
  // worth its time. Added and removed between regions.
  class BetweenTasks {
   public:
    virtual void Serve() = 0;

   protected:
    ~BetweenTasks() = default;
  };
  void Add(BetweenTasks& between) { between_.push_back(&between); }
  void Remove(BetweenTasks& between) { std::erase(between_, &between); }

 private:
  // 128: two lines, as the adjacent-line prefetcher pulls pairs.
  static constexpr std::size_t kSeparate = 128;

  void WorkerLoop(std::size_t thread);
  void WorkOnRegion(std::size_t thread);
  void ServeOthers() {
    for (BetweenTasks* between : between_) between->Serve();
  }

  // Odd while a region is open. Opening and closing each add one.
  alignas(kSeparate) std::atomic<std::uint32_t> generation_{0};
  alignas(kSeparate) std::atomic<std::size_t> next_task_{0};
  alignas(kSeparate) std::atomic<std::size_t> workers_inside_{0};
  alignas(kSeparate) std::atomic<std::size_t> sleepers_{0};
  std::atomic<bool> stop_{false};
  std::size_t tasks_ = 0;
  const TaskRef* region_ = nullptr;
  std::vector<BetweenTasks*> between_;
  std::vector<std::thread> workers_;
};

}  // namespace troupe
