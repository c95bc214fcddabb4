// Which experts were compared with their checksums, set by any thread. Two that compare the same
// one at the same time do the work twice and count it once.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe {

class VerifiedOnce {
 public:
  explicit VerifiedOnce(std::size_t experts) : done_(experts) {}

  bool Has(std::size_t expert) const { return done_[expert].load(std::memory_order_relaxed); }
  void Note(std::size_t expert) {
    if (!done_[expert].exchange(true, std::memory_order_relaxed)) {
      count_.fetch_add(1, std::memory_order_relaxed);
    }
  }
  std::uint64_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  std::vector<std::atomic<bool>> done_;
  std::atomic<std::uint64_t> count_{0};
};

}  // namespace troupe
