// The frames of one link that wait to be sent: one is being written, the rest follow in order, and
// together they have a limit. Pure; locking is the caller's (peer_links.cc).
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "base/status.h"
#include "cluster/transport/frame.h"

namespace troupe {

class SendQueue {
 public:
  explicit SendQueue(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  // The frame if it is to be written now, nothing if it waits behind others. kResourceExhausted:
  // with it more than the limit would wait; it is not taken.
  Result<std::optional<Frame>> Push(Frame frame);

  // The frame being written is out. What is to be written next, if anything waits.
  std::optional<Frame> Written();

  // Forgets all: the connection they were for is gone.
  void Clear();

  std::size_t bytes() const { return bytes_; }  // of what is being written as well

 private:
  std::size_t most_bytes_;
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
  writing_.reset();
  if (waiting_.empty()) return std::nullopt;
  std::optional<Frame> next(std::move(waiting_.front()));
  waiting_.pop_front();
  writing_ = next->size();
  return next;
}

inline void SendQueue::Clear() {
  bytes_ = 0;
  writing_.reset();
  waiting_.clear();
}

}  // namespace troupe
