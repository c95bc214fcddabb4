#include "runtime/ticket.h"

namespace troupe {

Result<GenerateResult> Ticket::Wait() {
  const MutexLock lock(mu_);
  if (!answer_ && engine_thread_ == std::this_thread::get_id()) {
    return Error(Code::kFailedPrecondition,
                 "request {}: waiting for its answer on the engine's thread would never end", id_);
  }
  while (!answer_) ended_.Wait(mu_);
  return *answer_;
}

bool Ticket::done() const {
  const MutexLock lock(mu_);
  return answer_.has_value();
}

void Ticket::Finish(Result<GenerateResult> answer) {
  const MutexLock lock(mu_);
  TROUPE_CHECK(!answer_);
  answer_ = std::move(answer);
  ended_.NotifyAll();
}

}  // namespace troupe
