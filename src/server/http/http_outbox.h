// The bytes on their way to one client, between the threads that write them and the one that sends
// them: bounded, in order, over when the client has left. Without sockets. Thread-safe.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <string>

#include "base/mutex.h"

namespace troupe {

class HttpOutbox {
 public:
  explicit HttpOutbox(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  enum class Put { kTaken, kTakenAndIdle, kFull, kGone };
  // kTakenAndIdle: nobody sends, so somebody has to be told to. kFull: the client has as much to
  // read as it may have and is to be let go. More than the limit is taken where nothing waits.
  Put Add(std::string bytes);

  // The next ones to send; empty: there are none, and whoever adds the next is told so.
  std::string Take();
  // These were sent, or will never be.
  void Sent(std::size_t bytes);

  // Nothing is taken any more; calls what waits for that, once.
  void Close();
  bool closed() const;
  // At once if it is closed.
  void WhenClosed(std::function<void()> call);
  void ForgetWhenClosed();

  std::size_t bytes() const;

 private:
  const std::size_t most_bytes_;
  mutable Mutex mu_;
  std::deque<std::string> waiting_ TROUPE_GUARDED_BY(mu_);
  std::size_t bytes_ TROUPE_GUARDED_BY(mu_) = 0;  // waiting, and being sent
  bool sending_ TROUPE_GUARDED_BY(mu_) = false;
  bool closed_ TROUPE_GUARDED_BY(mu_) = false;
  std::function<void()> when_closed_ TROUPE_GUARDED_BY(mu_);
};

}  // namespace troupe
