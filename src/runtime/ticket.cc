#include "runtime/ticket.h"

namespace troupe {

Status Ticket::CheckMayWait() const {
  if (answer_ || engine_thread_ != std::this_thread::get_id()) return OkStatus();
  return Error(Code::kFailedPrecondition,
               "request {}: waiting for its answer on the engine's thread would never end", id_);
}

Result<Answer> Ticket::Wait() {
  const MutexLock lock(mu_);
  TROUPE_RETURN_IF_ERROR(CheckMayWait());
  while (!answer_) ended_.Wait(mu_);
  return *answer_;
}

std::optional<Result<Answer>> Ticket::WaitFor(Nanos longest) {
  const MonotonicClock clock;
  const Nanos start = clock.Now();
  const MutexLock lock(mu_);
  if (Status may = CheckMayWait(); !may.ok()) return may;
  for (Nanos waited = 0; !answer_ && waited < longest; waited = clock.Now() - start) {
    ended_.WaitFor(mu_, longest - waited);
  }
  return answer_;
}

bool Ticket::done() const {
  const MutexLock lock(mu_);
  return answer_.has_value();
}

void Ticket::Finish(Result<Answer> answer) {
  {
    const MutexLock lock(mu_);
    TROUPE_CHECK(!answer_);
    answer_ = on_end_ ? answer : std::move(answer);
    ended_.NotifyAll();
  }
  if (const OnEnd on_end = std::exchange(on_end_, {})) on_end(answer);
}

}  // namespace troupe
