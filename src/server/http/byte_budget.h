// Bytes that all connections may hold together: bodies that come in, and what clients have not read
// yet. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace troupe {

class ByteBudget {
 public:
  explicit ByteBudget(std::size_t most) : left_(most) {}

  bool Take(std::size_t bytes) {
    std::size_t left = left_;
    do {
      if (left < bytes) return false;
    } while (!left_.compare_exchange_weak(left, left - bytes));
    return true;
  }
  void Give(std::size_t bytes) { left_ += bytes; }
  std::size_t left() const { return left_; }

 private:
  std::atomic<std::size_t> left_;
};

// A part of a budget, given back at the end. Threads: one at a time.
class HeldBytes {
 public:
  explicit HeldBytes(std::shared_ptr<ByteBudget> budget) : budget_(std::move(budget)) {}
  ~HeldBytes() { budget_->Give(held_); }
  HeldBytes(const HeldBytes&) = delete;
  HeldBytes& operator=(const HeldBytes&) = delete;

  // `bytes` in all, if they are more than it has; false, with nothing changed: there are not.
  bool GrowTo(std::size_t bytes) {
    if (bytes <= held_) return true;
    if (!budget_->Take(bytes - held_)) return false;
    held_ = bytes;
    return true;
  }
  std::size_t held() const { return held_; }

 private:
  const std::shared_ptr<ByteBudget> budget_;
  std::size_t held_ = 0;
};

}  // namespace troupe
