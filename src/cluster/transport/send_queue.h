// The frames of one link that wait to be sent: one is being written, the rest follow in order, and
// together they have a limit, and the frames of all links another one. Pure; locking is the
// caller's (peer_links.cc).
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "base/status.h"
#include "cluster/transport/frame.h"

namespace troupe {

// Bytes that wait on all links. Any thread.
class UnsentBytes {
 public:
  explicit UnsentBytes(std::size_t most) : most_(most) {}

  // `must`: whether there is room or not.
  bool Take(std::size_t bytes, bool must) {
    if (taken_.fetch_add(bytes) + bytes <= most_ || must) return true;
    taken_.fetch_sub(bytes);
    return false;
  }
  void GiveBack(std::size_t bytes) { taken_.fetch_sub(bytes); }
  std::size_t taken() const { return taken_; }

 private:
  const std::size_t most_;
  std::atomic<std::size_t> taken_ = 0;
};

class SendQueue {
 public:
  SendQueue(std::size_t most_bytes, UnsentBytes& all) : most_bytes_(most_bytes), all_(all) {}
  ~SendQueue() { Clear(); }
  SendQueue(const SendQueue&) = delete;
  SendQueue& operator=(const SendQueue&) = delete;

  // The frame if it is to be written now, nothing if it waits behind others. kResourceExhausted:
  // with it more than the limit would wait; it is not taken.
  Result<std::optional<Frame>> Push(Frame frame);

  // The frame being written is out. What is to be written next, if anything waits.
  std::optional<Frame> Written();

  // Forgets all: the connection they were for is gone.
  void Clear();

  std::size_t bytes() const { return bytes_; }  // of what is being written as well

 private:
  static constexpr std::size_t kAlways = 1 << 20;

  const std::size_t most_bytes_;
  UnsentBytes& all_;
  std::size_t bytes_ = 0;
  std::optional<std::size_t> writing_;  // the size of the frame being written
  std::deque<Frame> waiting_;
};

inline Result<std::optional<Frame>> SendQueue::Push(Frame frame) {
  if (frame.size() > most_bytes_ - bytes_) {
    return Error(Code::kResourceExhausted,
                 "{} bytes wait to be sent; with {} more they would be over {}", bytes_,
                 frame.size(), most_bytes_);
  }
  // What nodes tell each other is small, and gets through though other links are stuck.
  if (!all_.Take(frame.size(), /*must=*/bytes_ + frame.size() <= kAlways)) {
    return Error(Code::kResourceExhausted, "too much waits to be sent on all links together");
  }
  bytes_ += frame.size();
  if (writing_) {
    waiting_.push_back(std::move(frame));
    return std::optional<Frame>();
  }
  writing_ = frame.size();
  return std::optional<Frame>(std::move(frame));
}

inline std::optional<Frame> SendQueue::Written() {
  if (!writing_) return std::nullopt;
  bytes_ -= *writing_;
  all_.GiveBack(*writing_);
  writing_.reset();
  if (waiting_.empty()) return std::nullopt;
  std::optional<Frame> next(std::move(waiting_.front()));
  waiting_.pop_front();
  writing_ = next->size();
  return next;
}

inline void SendQueue::Clear() {
  all_.GiveBack(std::exchange(bytes_, 0));
  writing_.reset();
  waiting_.clear();
}

}  // namespace troupe
