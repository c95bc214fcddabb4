#include "runtime/batcher.h"

namespace troupe {
namespace {

// To wait before coming again, where no request has ended yet.
constexpr double kFirstRetrySeconds = 1;

}  // namespace

Batcher::Batcher(PassRunner& runner, const Tokenizer& tokenizer, const Clock& clock,
                 const BatcherOptions& options)
    : clock_(clock),
      loop_(runner, tokenizer, clock, options.limits),
      sequences_(runner.limits().sequences),
      most_requests_(sequences_ + options.queue),
      thread_([this] { Serve(); }) {}

Batcher::~Batcher() {
  TROUPE_CHECK(!OnEngineThread());
  {
    const MutexLock lock(mu_);
    stopping_ = true;
  }
  wake_.NotifyOne();
  thread_.join();
}

Result<std::shared_ptr<Ticket>> Batcher::Submit(BatchRequest request) {
  TROUPE_RETURN_IF_ERROR(loop_.Check(request));
  std::shared_ptr<Ticket> ticket;
  {
    const MutexLock lock(mu_);
    if (requests_ == most_requests_) {
      const double seconds = request_seconds_ > 0
                                 ? request_seconds_ / static_cast<double>(sequences_)
                                 : kFirstRetrySeconds;
      return Error(Code::kUnavailable, "{} requests are under way, no more can wait", requests_)
          .WithRetryAfter(seconds);
    }
    ticket = std::make_shared<Ticket>(next_id_++, thread_.get_id());
    ++requests_;
    submitted_.push_back({.ticket = ticket, .request = std::move(request), .since = clock_.Now()});
  }
  wake_.NotifyOne();
  return ticket;
}

void Batcher::Serve() {
  for (;;) {
    std::vector<Submitted> submitted;
    bool stopping = false;
    {
      const MutexLock lock(mu_);
      while (!stopping_ && submitted_.empty() && loop_.size() == 0) wake_.Wait(mu_);
      submitted.swap(submitted_);
      stopping = stopping_;
    }
    for (Submitted& one : submitted) {
      loop_.Add(std::move(one.ticket), std::move(one.request), one.since);
    }
    if (stopping) break;
    Deliver(loop_.Step());
  }
  Deliver(loop_.EndAll(Status(Code::kCancelled, "the engine was closed")));
}

// A ticket is finished after its place has become free: who waits for an answer and then submits
// again is not refused for the request that has just ended.
void Batcher::Deliver(std::vector<EndedRequest> ended) {
  {
    const MutexLock lock(mu_);
    requests_ -= ended.size();
    request_seconds_ = loop_.request_seconds();
    counters_ = loop_.counters();
  }
  for (EndedRequest& request : ended) request.ticket->Finish(std::move(request.answer));
}

BatchCounters Batcher::counters() const {
  const MutexLock lock(mu_);
  BatchCounters counters = counters_;
  counters.waiting = requests_ - counters.reading - counters.decoding;
  return counters;
}

}  // namespace troupe
