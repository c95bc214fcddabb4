// What a request that was handed to the batcher is held by: whoever asked waits for its answer here
// and may cancel it; the batcher asks whether it was cancelled, and leaves the answer. Outlives the
// batcher if need be. Threads: any, unless said otherwise.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "expert/pass_facts.h"
#include "runtime/generation.h"

namespace troupe {

class Ticket {
 public:
  using OnEnd = std::function<void(const Result<Answer>& answer)>;

  // engine_thread: the one that will leave the answer, and call on_end once it is there.
  explicit Ticket(RequestId id, std::thread::id engine_thread = {}, OnEnd on_end = {})
      : id_(id), engine_thread_(engine_thread), on_end_(std::move(on_end)) {}

  RequestId id() const { return id_; }

  // Takes effect before the next pass, or within a layer of one that nobody else has rows in; its
  // answer is then what was written so far. Any number of times, also after the end.
  void Cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }
  // cancelled(), for a pass to look at while it runs.
  const std::atomic<bool>& cancelled_flag() const { return cancelled_; }

  // Waits for the end. Any number of times. kFailedPrecondition on the engine's thread, which would
  // wait for itself.
  Result<Answer> Wait();
  // The same, but no longer than this; nothing if there is no answer by then.
  std::optional<Result<Answer>> WaitFor(Nanos longest);
  bool done() const;

  // The batcher's, once. Lets go of on_end.
  void Finish(Result<Answer> answer);

 private:
  Status CheckMayWait() const TROUPE_REQUIRES(mu_);

  const RequestId id_;
  const std::thread::id engine_thread_;
  OnEnd on_end_;  // the engine's thread's
  std::atomic<bool> cancelled_{false};
  mutable Mutex mu_;
  CondVar ended_;
  std::optional<Result<Answer>> answer_ TROUPE_GUARDED_BY(mu_);
};

}  // namespace troupe
