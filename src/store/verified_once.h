// Which experts were compared with their checksums, set by any thread. Two that compare the same
// one at the same time do the work twice and count it once. Once a file of theirs was written to,
// what was true of their bytes says nothing any more.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe {

class VerifiedOnce {
 public:
  explicit VerifiedOnce(std::size_t experts) : done_(experts) {}

  // Whether the expert need not be compared any more.
  bool Has(std::size_t expert) const {
    return !each_time_.load(std::memory_order_relaxed) &&
           done_[expert].load(std::memory_order_relaxed);
  }
  void CompareEachTime() { each_time_.store(true, std::memory_order_relaxed); }
  void Note(std::size_t expert) {
    if (!done_[expert].exchange(true, std::memory_order_relaxed)) {
      count_.fetch_add(1, std::memory_order_relaxed);
    }
  }
  std::uint64_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  std::vector<std::atomic<bool>> done_;
  std::atomic<bool> each_time_{false};
  std::atomic<std::uint64_t> count_{0};
};

}  // namespace troupe
