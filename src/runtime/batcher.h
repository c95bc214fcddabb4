// Serves many requests on one engine: submission from any thread, one thread that owns the engine
// and runs the passes (batch_loop.h). A request gets the bytes that it would get alone, whoever
// shares its passes. Thread-safe.
#pragma once

#include <troupe/state.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "runtime/batch_loop.h"

namespace troupe {

struct BatcherOptions {
  BatchLimits limits;
  std::size_t queue = 64;  // requests that may wait beside those that run
  DraftChoice drafters = {};
};

class Batcher {
 public:
  // All must outlive it; the runner is its own as long as it lives. kResourceExhausted: the system
  // gives no thread.
  static Result<std::unique_ptr<Batcher>> Create(PassRunner& runner, const Tokenizer& tokenizer,
                                                 const Clock& clock, const BatcherOptions& options);
  // Closes. Not from a sink: see CloseLater.
  ~Batcher();
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  // Never waits for a pass. The request's sinks are called on the engine's thread and must not
  // block. kInvalidArgument and kResourceExhausted: it can never be served. kUnavailable: the queue
  // is full, come again after status.retry_after() seconds. kFailedPrecondition: it is closed.
  Result<std::shared_ptr<Ticket>> Submit(BatchRequest request);

  // Whether a request can ever be served, as Submit finds it.
  Status Check(const BatchRequest& request) const { return loop_.Check(request); }

  // Ends all requests as cancelled after the pass under way, and waits until every one has its
  // answer and no sink runs any more. On the engine's thread it does not wait: that would be for
  // itself. Any number of times, from any thread.
  void Close();
  // Closes from a sink, and leaves to the engine's thread, as the last thing it does, to let go of
  // what owns the batcher. Needs no other thread. REQUIRES: OnEngineThread.
  void CloseLater(std::shared_ptr<void> owner);

  // Has the engine's thread do something between two passes, soon and in the order of the calls; it
  // must be short, as nobody is answered meanwhile. What short errands ask for is done
  // before the same pass, up to three times in turn. Without effect once closed.
  void Between(std::function<void()> errand);
  // From such an errand: as BatchLoop's. REQUIRES: OnEngineThread.
  std::uint32_t RowsBetween(const RowSeconds& seconds, std::uint32_t most) const;
  // Of the passes of requests that are submitted from now on, as BatchLoop::set_speed_share.
  void WeighPasses(double share) {
    Between([this, share] { loop_.set_speed_share(share); });
  }
  // For the requests and passes to come. What waits already stays, even if there is room for less.
  void SetLimits(std::size_t queue, double target_seconds);

  // Whether the caller was called by the engine's thread, from a sink.
  bool OnEngineThread() const { return std::this_thread::get_id() == engine_thread_; }
  // As of the end of the last pass; what was submitted since then is waiting.
  BatchCounters counters() const;
  // As it is once the pass under way has ended, for which it waits, but no longer than that; then,
  // and from a sink, as it was known last. Nothing is put together unless somebody asks.
  std::shared_ptr<const ModelState> State(Nanos longest);
  std::size_t most_requests() const;  // running and waiting

 private:
  struct Submitted {
    std::shared_ptr<Ticket> ticket;
    BatchRequest request;
    Nanos since = 0;
  };

  Batcher(PassRunner& runner, const Tokenizer& tokenizer, const Clock& clock,
          const BatcherOptions& options);
  static void Main(Batcher* batcher);
  void Serve();
  void Deliver(std::vector<EndedRequest> ended);
  void TellState();
  void RunErrands();

  PassRunner& runner_;
  const Clock& clock_;
  BatchLoop loop_;  // the thread's, except for Check
  const std::size_t sequences_;
  mutable Mutex mu_;
  std::size_t most_requests_ TROUPE_GUARDED_BY(mu_);
  std::optional<double> target_seconds_ TROUPE_GUARDED_BY(mu_);  // for the loop, once it is set
  CondVar wake_;
  CondVar served_;
  CondVar told_;
  bool stopping_ TROUPE_GUARDED_BY(mu_) = false;
  bool ended_ TROUPE_GUARDED_BY(mu_) = false;  // every request has its answer, and none will come
  std::shared_ptr<void> owner_ TROUPE_GUARDED_BY(mu_);
  std::vector<Submitted> submitted_ TROUPE_GUARDED_BY(mu_);
  std::vector<std::function<void()>> errands_ TROUPE_GUARDED_BY(mu_);
  std::size_t requests_ TROUPE_GUARDED_BY(mu_) = 0;  // submitted and not delivered
  // Tokens of prompts that counters_ does not know: submitted, or in the loop since the last pass.
  std::size_t submitted_tokens_ TROUPE_GUARDED_BY(mu_) = 0;
  std::size_t taken_tokens_ TROUPE_GUARDED_BY(mu_) = 0;
  double request_seconds_ TROUPE_GUARDED_BY(mu_) = 0;
  BatchCounters counters_ TROUPE_GUARDED_BY(mu_);
  bool state_wanted_ TROUPE_GUARDED_BY(mu_) = false;
  std::shared_ptr<const ModelState> state_ TROUPE_GUARDED_BY(mu_);  // told last; never null
  std::thread thread_;
  std::thread::id engine_thread_;  // beside thread_, which forgets it
};

}  // namespace troupe
