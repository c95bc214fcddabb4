// The bytes on their way to one client, between the threads that write them and the one that sends
// them: bounded, in order, over when the client has left. Without sockets. Thread-safe.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "server/http/unread_pool.h"

namespace troupe {

class HttpOutbox {
 public:
  // What it holds is in `all` as well; `let_go`: the client is to go for what it has in there
  // (UnreadPool::Share).
  HttpOutbox(std::size_t most_bytes, std::shared_ptr<UnreadPool> all, std::function<void()> let_go)
      : most_bytes_(most_bytes), share_(std::move(all), std::move(let_go)) {}
  HttpOutbox(const HttpOutbox&) = delete;
  HttpOutbox& operator=(const HttpOutbox&) = delete;

  enum class Put { kTaken, kTakenAndIdle, kFull, kGone };
  // kTakenAndIdle: nobody sends, so somebody has to be told to. kFull: the client has as much to
  // read as it may have, or more than any other where all have too much, and is to be let go. More
  // than the client's own limit is taken where nothing waits.
  Put Add(std::string bytes);

  // The next ones to send; empty: there are none, and whoever adds the next is told so.
  std::string Take();
  // These were sent.
  void Sent(std::size_t bytes);

  // Nothing is taken any more; calls what waits for that, once.
  void Close();
  bool closed() const;
  bool is_let_go() const { return share_.goes(); }
  // At once if it is closed.
  void WhenClosed(std::function<void()> call);
  void ForgetWhenClosed();

 private:
  const std::size_t most_bytes_;
  UnreadPool::Share share_;
  mutable Mutex mu_;
  std::deque<std::string> waiting_ TROUPE_GUARDED_BY(mu_);
  std::size_t bytes_ TROUPE_GUARDED_BY(mu_) = 0;  // waiting, and being sent
  bool sending_ TROUPE_GUARDED_BY(mu_) = false;
  bool closed_ TROUPE_GUARDED_BY(mu_) = false;
  std::function<void()> when_closed_ TROUPE_GUARDED_BY(mu_);
};

}  // namespace troupe
