// What all clients together may have to read. Where there is no room for more, whoever has most to
// read is let go, so that slow readers take nothing from those that read, nor from short answers.
// Letting go is the part of those who have the connections. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <unordered_set>

#include "base/mutex.h"

namespace troupe {

class UnreadPool {
 public:
  // A client that has no more to read than this is never let go for its own next bytes.
  static constexpr std::size_t kAlways = 64 * 1024;

  explicit UnreadPool(std::size_t most) : most_(most) {}

  // What one client has to read, given back at the end.
  class Share {
   public:
    // `let_go` is called, on any thread and without a lock, once this client is to go; it may be
    // called after the share is gone.
    Share(std::shared_ptr<UnreadPool> pool, std::function<void()> let_go);
    ~Share();
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    // False: this client has most to read, and is to go.
    bool Take(std::size_t bytes);
    void Give(std::size_t bytes);
    bool goes() const { return goes_; }

   private:
    friend class UnreadPool;
    const std::shared_ptr<UnreadPool> pool_;
    const std::function<void()> let_go_;
    std::size_t bytes_ = 0;  // the pool's lock guards it
    std::atomic<bool> goes_ = false;
  };

  std::size_t unread() const;

 private:
  // Who has most once `taker` has `more`; null: nobody but him, who may.
  Share* Largest(Share& taker, std::size_t more) TROUPE_REQUIRES(mu_);

  const std::size_t most_;
  mutable Mutex mu_;
  std::unordered_set<Share*> shares_ TROUPE_GUARDED_BY(mu_);
  std::size_t bytes_ TROUPE_GUARDED_BY(mu_) = 0;
  std::size_t going_ TROUPE_GUARDED_BY(mu_) = 0;  // of them, those of clients that are to go
};

}  // namespace troupe
