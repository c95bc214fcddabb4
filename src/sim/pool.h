// Objects with small numbers as names, which are used again: memory follows the most that were
// alive at once. What an object holds (a vector's capacity, say) stays with it for its next use.
#pragma once

#include <cstdint>
#include <vector>

namespace troupe {

template <typename T>
class Pool {
 public:
  std::uint32_t Take() {
    ++used_;
    if (free_.empty()) {
      items_.emplace_back();
      return static_cast<std::uint32_t>(items_.size() - 1);
    }
    const std::uint32_t id = free_.back();
    free_.pop_back();
    return id;
  }
  void Give(std::uint32_t id) {
    --used_;
    free_.push_back(id);
  }
  T& operator[](std::uint32_t id) { return items_[id]; }
  const T& operator[](std::uint32_t id) const { return items_[id]; }
  std::size_t used() const { return used_; }

 private:
  std::vector<T> items_;
  std::vector<std::uint32_t> free_;
  std::size_t used_ = 0;
};

}  // namespace troupe
