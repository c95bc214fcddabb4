#include "server/parked_reply.h"

#include <utility>

#include "server/sse.h"

namespace troupe {

void ParkedReply::WaitAs(std::unique_ptr<WaitingStream> stream) {
  const MutexLock lock(mu_);
  stream_ = std::move(stream);
}

bool ParkedReply::Wait() {
  const MutexLock lock(mu_);
  if (answered_ || stream_ == nullptr) return false;
  if (!std::exchange(begun_, true)) reply_->Begin(StreamHead());
  return reply_->Write(stream_->Beat());
}

ToldWaiting ParkedReply::TakeOver() {
  const MutexLock lock(mu_);
  answered_ = true;
  return begun_ ? stream_->told() : ToldWaiting();
}

void ParkedReply::Send(HttpResponse response) {
  const MutexLock lock(mu_);
  answered_ = true;
  if (!begun_) return reply_->Send(std::move(response));
  reply_->Write(response.status == 200 ? response.body : stream_->Refused(response));
  reply_->End();
}

void ParkedReply::Begin(HttpResponse head) {
  const MutexLock lock(mu_);
  answered_ = true;
  if (!begun_) reply_->Begin(std::move(head));
}

}  // namespace troupe
