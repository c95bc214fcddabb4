// Streams that show what changes to those who watch: one event after the other, the same for all,
// at an even pace, put together only while somebody watches. What the events say is the caller's
// part. Thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "server/http/http_reply.h"
#include "server/late_thread.h"

namespace troupe {

class LiveFeed {
 public:
  struct Options {
    std::chrono::milliseconds every{300};
    std::size_t most_watchers = 16;
  };

  // `tell` gives the next event, as sse.h writes it. It is called on a thread of the feed's own,
  // which may wait in it.
  LiveFeed(std::function<std::string()> tell, const Options& options)
      : tell_(std::move(tell)), options_(options) {}
  ~LiveFeed() { Close(); }
  LiveFeed(const LiveFeed&) = delete;
  LiveFeed& operator=(const LiveFeed&) = delete;

  // Begins the reply as a stream with `first`, and goes on until its client leaves. kUnavailable,
  // with nothing said yet: too many watch already, it was closed, or the system gives no thread.
  Status Add(HttpReplyPtr reply, std::string_view first);

  // Ends all streams, and lets nobody watch any more. Waits for an event under way. Any number of
  // times, from one thread.
  void Close();

  std::size_t watchers() const;

 private:
  void Main();

  const std::function<std::string()> tell_;
  const Options options_;
  mutable Mutex mu_;
  CondVar wake_;
  bool closing_ TROUPE_GUARDED_BY(mu_) = false;
  std::vector<HttpReplyPtr> watchers_ TROUPE_GUARDED_BY(mu_);
  LateThread thread_;  // begun under mu_
};

}  // namespace troupe
