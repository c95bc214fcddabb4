// Calls of several peers that wait for one host: one of each peer in turn, so that a busy peer
// slows down itself and not the others; and no more than fit. A call has a size() in bytes. Pure:
// whoever uses it has the lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>

namespace troupe {

template <typename Call>
class FairQueue {
 public:
  // Calls of a peer, and bytes of all of them.
  FairQueue(std::size_t most_each, std::size_t most_bytes)
      : most_each_(most_each), most_bytes_(most_bytes) {}

  // False if the peer has as many waiting as it may, or there is no room.
  bool Add(std::uint64_t peer, Call call) {
    std::deque<Call>& queue = queues_[peer];
    if (queue.size() >= most_each_ || call.size() > most_bytes_ - bytes_) return false;
    bytes_ += call.size();
    queue.push_back(std::move(call));
    ++size_;
    return true;
  }

  // The oldest call of the peer whose turn it is.
  std::optional<Call> Next() {
    if (size_ == 0) return std::nullopt;
    auto next = queues_.upper_bound(last_);
    while (next == queues_.end() || next->second.empty()) {
      next = next == queues_.end() ? queues_.begin() : std::next(next);
    }
    last_ = next->first;
    --size_;
    Call call = std::move(next->second.front());
    next->second.pop_front();
    bytes_ -= call.size();
    return call;
  }

  // Takes out those of the peer for which `is` says so.
  template <typename Is>
  std::size_t Drop(std::uint64_t peer, const Is& is) {
    const auto found = queues_.find(peer);
    if (found == queues_.end()) return 0;
    const std::size_t dropped = std::erase_if(found->second, [&](const Call& call) {
      const bool goes = is(call);
      if (goes) bytes_ -= call.size();
      return goes;
    });
    size_ -= dropped;
    return dropped;
  }

  // The peer has gone, with all of its calls.
  void Forget(std::uint64_t peer) {
    const auto found = queues_.find(peer);
    if (found == queues_.end()) return;
    size_ -= found->second.size();
    for (const Call& call : found->second) bytes_ -= call.size();
    queues_.erase(found);
  }

  std::size_t size() const { return size_; }

 private:
  const std::size_t most_each_, most_bytes_;
  std::map<std::uint64_t, std::deque<Call>> queues_;
  std::uint64_t last_ = 0;  // whose turn it was
  std::size_t size_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace troupe
