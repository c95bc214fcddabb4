#include "server/live_feed.h"

#include <utility>

#include "server/sse.h"

namespace troupe {

Status LiveFeed::Add(HttpReplyPtr reply, std::string_view first) {
  const MutexLock lock(mu_);
  if (closing_) return Error(Code::kUnavailable, "the server is ending");
  if (watchers_.size() == options_.most_watchers) {
    return Error(Code::kUnavailable, "{} watch already, no more may", watchers_.size())
        .WithRetryAfter(5);
  }
  if (!thread_.Begin([this] { Main(); })) {
    return Error(Code::kUnavailable, "the system gives no thread for a stream");
  }
  // Proxies that gather bytes would make an even pace uneven.
  reply->Begin(
      {.content_type = std::string(kEventStream), .headers = {{"X-Accel-Buffering", "no"}}});
  reply->Write(first);
  watchers_.push_back(std::move(reply));
  wake_.NotifyOne();
  return OkStatus();
}

void LiveFeed::Main() {
  const auto every = std::chrono::duration_cast<std::chrono::nanoseconds>(options_.every);
  for (;;) {
    {
      const MutexLock lock(mu_);
      while (!closing_ && watchers_.empty()) wake_.Wait(mu_);
      if (closing_) return;
    }
    const std::string event = tell_();
    const auto next = std::chrono::steady_clock::now() + every;
    const MutexLock lock(mu_);
    std::erase_if(watchers_, [&](const HttpReplyPtr& watcher) { return !watcher->Write(event); });
    while (!closing_) {
      const std::chrono::nanoseconds left = next - std::chrono::steady_clock::now();
      if (left.count() <= 0) break;
      wake_.WaitFor(mu_, left.count());
    }
  }
}

void LiveFeed::Close() {
  {
    const MutexLock lock(mu_);
    closing_ = true;
    wake_.NotifyOne();
  }
  thread_.Join();
  const MutexLock lock(mu_);
  for (const HttpReplyPtr& watcher : watchers_) watcher->End();
  watchers_.clear();
}

std::size_t LiveFeed::watchers() const {
  const MutexLock lock(mu_);
  return watchers_.size();
}

}  // namespace troupe
