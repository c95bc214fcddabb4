#include "server/http/http_outbox.h"

#include <utility>

namespace troupe {
namespace {

// Room is given back piece by piece as the system takes them, however much was put at once.
constexpr std::size_t kPiece = 64 * 1024;

}  // namespace

HttpOutbox::Put HttpOutbox::Add(std::string bytes) {
  const std::size_t more = bytes.size();
  {
    const MutexLock lock(mu_);
    if (closed_) return Put::kGone;
    if (bytes_ > 0 && bytes_ + more > most_bytes_) return Put::kFull;
  }
  if (!share_.Take(more)) return Put::kFull;  // calls others, so without the lock
  const MutexLock lock(mu_);
  if (closed_) {
    share_.Give(more);
    return Put::kGone;
  }
  bytes_ += more;
  if (more <= kPiece) {
    waiting_.push_back(std::move(bytes));
  } else {
    for (std::size_t at = 0; at < more; at += kPiece) waiting_.push_back(bytes.substr(at, kPiece));
  }
  return std::exchange(sending_, true) ? Put::kTaken : Put::kTakenAndIdle;
}

std::string HttpOutbox::Take() {
  const MutexLock lock(mu_);
  if (closed_ || waiting_.empty()) {
    sending_ = false;
    return {};
  }
  std::string bytes = std::move(waiting_.front());
  waiting_.pop_front();
  // Small pieces that have piled up leave in one.
  constexpr std::size_t kTogether = 16 * 1024;
  while (!waiting_.empty() && bytes.size() + waiting_.front().size() <= kTogether) {
    bytes += waiting_.front();
    waiting_.pop_front();
  }
  return bytes;
}

void HttpOutbox::Sent(std::size_t bytes) {
  const MutexLock lock(mu_);
  bytes_ -= bytes;
  share_.Give(bytes);
}

void HttpOutbox::Close() {
  std::function<void()> call;
  {
    const MutexLock lock(mu_);
    if (std::exchange(closed_, true)) return;
    std::size_t dropped = 0;
    for (const std::string& bytes : waiting_) dropped += bytes.size();
    waiting_.clear();
    bytes_ -= dropped;
    share_.Give(dropped);
    call = std::exchange(when_closed_, nullptr);
  }
  if (call) call();
}

bool HttpOutbox::closed() const {
  const MutexLock lock(mu_);
  return closed_;
}

void HttpOutbox::WhenClosed(std::function<void()> call) {
  {
    const MutexLock lock(mu_);
    if (!closed_) {
      when_closed_ = std::move(call);
      return;
    }
  }
  call();
}

void HttpOutbox::ForgetWhenClosed() {
  std::function<void()> dropped;  // destroyed without the lock: it may own anything
  const MutexLock lock(mu_);
  dropped = std::exchange(when_closed_, nullptr);
}

}  // namespace troupe
