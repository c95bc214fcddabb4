// What a request that was handed to the batcher is held by: whoever asked waits for its answer here
// and may cancel it; the batcher asks whether it was cancelled, and leaves the answer. Outlives the
// batcher if need be. Threads: any, unless said otherwise.
#pragma once

#include <atomic>
#include <optional>
#include <thread>

#include "base/mutex.h"
#include "base/status.h"
#include "expert/pass_facts.h"
#include "runtime/generation.h"

namespace troupe {

class Ticket {
 public:
  // engine_thread: the one that will leave the answer.
  explicit Ticket(RequestId id, std::thread::id engine_thread = {})
      : id_(id), engine_thread_(engine_thread) {}

  RequestId id() const { return id_; }

  // Takes effect before the next pass; its answer is then what was written so far. Any number of
  // times, also after the end.
  void Cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

  // Waits for the end. Any number of times. kFailedPrecondition on the engine's thread, which would
  // wait for itself.
  Result<GenerateResult> Wait();
  bool done() const;

  // The batcher's, once.
  void Finish(Result<GenerateResult> answer);

 private:
  const RequestId id_;
  const std::thread::id engine_thread_;
  std::atomic<bool> cancelled_{false};
  mutable Mutex mu_;
  CondVar ended_;
  std::optional<Result<GenerateResult>> answer_ TROUPE_GUARDED_BY(mu_);
};

}  // namespace troupe
