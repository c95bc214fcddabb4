#include "runtime/batcher.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/check.h"

namespace troupe {
namespace {

// To wait before coming again, where no request has ended yet.
constexpr double kFirstRetrySeconds = 1;
// Requests that are told of one by one. More do not help those who look.
constexpr std::size_t kMostTold = 256;
constexpr Nanos kLongestWait = 3'600'000'000'000;

}  // namespace

Batcher::Batcher(PassRunner& runner, const Tokenizer& tokenizer, const Clock& clock,
                 const BatcherOptions& options)
    : runner_(runner),
      clock_(clock),
      loop_(runner, tokenizer, clock, options.limits, options.drafters),
      sequences_(runner.limits().sequences),
      most_requests_(sequences_ + options.queue),
      state_(std::make_shared<const ModelState>()) {
  counters_.card = runner.card();
}

Result<std::unique_ptr<Batcher>> Batcher::Create(PassRunner& runner, const Tokenizer& tokenizer,
                                                 const Clock& clock,
                                                 const BatcherOptions& options) {
  std::unique_ptr<Batcher> batcher(new Batcher(runner, tokenizer, clock, options));
  try {
    batcher->thread_ = std::thread(Main, batcher.get());
  } catch (const std::system_error& error) {
    return Error(Code::kResourceExhausted, "no thread for the engine: {}", error.what());
  }
  batcher->engine_thread_ = batcher->thread_.get_id();
  return batcher;
}

Batcher::~Batcher() {
  if (!thread_.joinable()) return;  // it could not be started
  if (OnEngineThread()) {
    const MutexLock lock(mu_);
    TROUPE_CHECK(ended_);  // from Main, which does nothing after this
    thread_.detach();
    return;
  }
  Close();
  thread_.join();
}

void Batcher::Close() {
  const MutexLock lock(mu_);
  stopping_ = true;
  wake_.NotifyOne();
  if (OnEngineThread()) return;
  while (!ended_) served_.Wait(mu_);
}

void Batcher::CloseLater(std::shared_ptr<void> owner) {
  TROUPE_CHECK(OnEngineThread());
  const MutexLock lock(mu_);
  TROUPE_CHECK(!ended_ && owner_ == nullptr);
  stopping_ = true;
  owner_ = std::move(owner);
}

Result<std::shared_ptr<Ticket>> Batcher::Submit(BatchRequest request) {
  TROUPE_RETURN_IF_ERROR(loop_.Check(request));
  const MutexLock lock(mu_);
  if (stopping_) return Error(Code::kFailedPrecondition, "the engine was closed");
  if (requests_ >= most_requests_) {
    const double seconds = request_seconds_ > 0 ? request_seconds_ / static_cast<double>(sequences_)
                                                : kFirstRetrySeconds;
    return Error(Code::kUnavailable, "{} requests are under way, no more can wait", requests_)
        .WithRetryAfter(seconds);
  }
  auto ticket =
      std::make_shared<Ticket>(runner_.NewRequest(), engine_thread_, std::move(request.on_end));
  ++requests_;
  submitted_tokens_ += request.tokens_to_read();
  submitted_.push_back({.ticket = ticket, .request = std::move(request), .since = clock_.Now()});
  wake_.NotifyOne();  // under the lock: a sink of the request may close and destroy the batcher
  return ticket;
}

void Batcher::SetLimits(std::size_t queue, double target_seconds) {
  const MutexLock lock(mu_);
  most_requests_ = sequences_ + queue;
  target_seconds_ = target_seconds;
}

std::size_t Batcher::most_requests() const {
  const MutexLock lock(mu_);
  return most_requests_;
}

void Batcher::Main(Batcher* batcher) {
  batcher->Serve();
  std::shared_ptr<void> owner;  // may hold the batcher, which is not touched after it is let go
  {
    const MutexLock lock(batcher->mu_);
    owner = std::move(batcher->owner_);
    batcher->ended_ = true;
    batcher->served_.NotifyAll();
    batcher->told_.NotifyAll();
  }
}

void Batcher::Serve() {
  for (;;) {
    std::vector<Submitted> submitted;
    bool stopping = false;
    {
      const MutexLock lock(mu_);
      while (!stopping_ && submitted_.empty() && loop_.size() == 0 && !state_wanted_ &&
             errands_.empty()) {
        wake_.Wait(mu_);
      }
      submitted.swap(submitted_);
      taken_tokens_ += std::exchange(submitted_tokens_, 0);
      stopping = stopping_;
      if (target_seconds_) loop_.set_target_seconds(*std::exchange(target_seconds_, std::nullopt));
    }
    for (Submitted& one : submitted) {
      loop_.Add(std::move(one.ticket), std::move(one.request), one.since);
    }
    if (stopping) break;
    RunErrands();
    Deliver(loop_.Step());
    TellState();
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
    taken_tokens_ = 0;
  }
  for (EndedRequest& request : ended) request.ticket->Finish(std::move(request.answer));
}

void Batcher::Between(std::function<void()> errand) {
  const MutexLock lock(mu_);
  if (stopping_) return;
  errands_.push_back(std::move(errand));
  wake_.NotifyOne();
}

// What an errand asks for in its turn, as one step of a cluster's plan asks for the next, need not
// wait for another pass where that takes next to no time; errands that compute or copy take the
// time that there is before a pass once.
void Batcher::RunErrands() {
  constexpr int kTurns = 4;
  constexpr Nanos kShort = 1'000'000;
  const Nanos start = clock_.Now();
  for (int turn = 0; turn < kTurns && clock_.Now() - start < kShort; ++turn) {
    std::vector<std::function<void()>> errands;
    {
      const MutexLock lock(mu_);
      errands.swap(errands_);
    }
    if (errands.empty() && turn == 0) return;
    for (const std::function<void()>& errand : errands) errand();
  }
  loop_.NoteBetween(static_cast<double>(clock_.Now() - start) * 1e-9);
}

std::uint32_t Batcher::RowsBetween(const RowSeconds& seconds, std::uint32_t most) const {
  TROUPE_CHECK(OnEngineThread());
  return loop_.RowsBetween(seconds, most);
}

void Batcher::TellState() {
  {
    const MutexLock lock(mu_);
    if (!state_wanted_) return;
  }
  auto state = std::make_shared<const ModelState>(
      ModelState{.requests = loop_.Requests(kMostTold), .experts = runner_.LookAtExperts()});
  const MutexLock lock(mu_);
  state_wanted_ = false;
  state_.swap(state);
  told_.NotifyAll();
}

std::shared_ptr<const ModelState> Batcher::State(Nanos longest) {
  const MutexLock lock(mu_);
  if (OnEngineThread()) return state_;
  state_wanted_ = true;
  wake_.NotifyOne();
  const std::shared_ptr<const ModelState> before = state_;
  const Nanos until = clock_.Now() + std::min(longest, kLongestWait);
  while (state_ == before && !ended_) {
    const Nanos left = until - clock_.Now();
    if (left <= 0) break;
    told_.WaitFor(mu_, left);
  }
  return state_;
}

BatchCounters Batcher::counters() const {
  const MutexLock lock(mu_);
  BatchCounters counters = counters_;
  counters.waiting = requests_ - counters.reading - counters.decoding;
  counters.to_read += taken_tokens_ + submitted_tokens_;
  return counters;
}

}  // namespace troupe
