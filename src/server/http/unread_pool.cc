#include "server/http/unread_pool.h"

#include <utility>
#include <vector>

namespace troupe {

UnreadPool::Share::Share(std::shared_ptr<UnreadPool> pool, std::function<void()> let_go)
    : pool_(std::move(pool)), let_go_(std::move(let_go)) {
  const MutexLock lock(pool_->mu_);
  pool_->shares_.insert(this);
}

UnreadPool::Share::~Share() {
  Give(bytes_);
  const MutexLock lock(pool_->mu_);
  pool_->shares_.erase(this);
}

bool UnreadPool::Share::Take(std::size_t bytes) {
  std::vector<std::function<void()>> told;
  {
    const MutexLock lock(pool_->mu_);
    if (goes_) return false;
    while (pool_->bytes_ - pool_->going_ + bytes > pool_->most_) {
      Share* const largest = pool_->Largest(*this, bytes);
      if (largest == nullptr) break;
      if (largest == this) return false;
      largest->goes_ = true;
      pool_->going_ += largest->bytes_;
      told.push_back(largest->let_go_);
    }
    bytes_ += bytes;
    pool_->bytes_ += bytes;
  }
  for (const auto& let_go : told) let_go();
  return true;
}

void UnreadPool::Share::Give(std::size_t bytes) {
  const MutexLock lock(pool_->mu_);
  bytes_ -= bytes;
  pool_->bytes_ -= bytes;
  if (goes_) pool_->going_ -= bytes;
}

UnreadPool::Share* UnreadPool::Largest(Share& taker, std::size_t more) {
  const std::size_t taken = taker.bytes_ + more;
  Share* largest = taken > kAlways ? &taker : nullptr;
  std::size_t most = largest != nullptr ? taken : 0;
  for (Share* const share : shares_) {
    if (share == &taker || share->goes_ || share->bytes_ <= most) continue;
    largest = share;
    most = share->bytes_;
  }
  return largest;
}

std::size_t UnreadPool::unread() const {
  const MutexLock lock(mu_);
  return bytes_;
}

}  // namespace troupe
