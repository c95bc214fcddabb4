// Joins neighbouring symbols, always the cheapest pair first and of equal ones the leftmost, until
// no pair can be joined. Both kinds of tokenizer use it, each with its own cost of a pair.
// n symbols take O(n log n) steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <queue>
#include <vector>

#include "text/vocab.h"

namespace troupe {

inline constexpr TokenId kNoToken = -1;

struct Symbol {
  std::uint32_t begin;   // of its bytes in the text
  std::uint32_t length;  // 0: was joined to its left neighbour
  TokenId id = kNoToken;
  std::int32_t previous = -1, next = -1;  // neighbours; -1 at the ends
};

// The cost and the result of joining two symbols.
struct Merge {
  double cost;
  TokenId id;
};

// Keeps its memory from one text to the next.
class PairMerger {
 public:
  std::vector<Symbol>& symbols() { return symbols_; }

  // Links symbols() in their order and joins them; find(left, right) gives a pair's Merge or
  // nothing. Then the symbols of a length above 0 are the result.
  template <typename Find>
  void Run(Find find) {
    const auto count = static_cast<std::int32_t>(symbols_.size());
    for (std::int32_t i = 0; i < count; ++i) {
      At(i).previous = i - 1;
      At(i).next = i + 1 < count ? i + 1 : -1;
    }
    for (std::int32_t i = 1; i < count; ++i) Offer(i - 1, i, find);
    while (!queue_.empty()) {
      const Candidate best = queue_.top();
      queue_.pop();
      Symbol& left = At(best.left);
      Symbol& right = At(best.right);
      // Symbols only grow or vanish: equal lengths mean that the pair is still the one offered.
      if (left.length == 0 || right.length == 0 || left.length + right.length != best.length) {
        continue;
      }
      left.length = best.length;
      left.id = best.id;
      left.next = right.next;
      right.length = 0;
      if (left.next >= 0) At(left.next).previous = best.left;
      if (left.previous >= 0) Offer(left.previous, best.left, find);
      if (left.next >= 0) Offer(best.left, left.next, find);
    }
  }

 private:
  struct Candidate {
    double cost;
    std::int32_t left, right;
    std::uint32_t length;
    TokenId id;
    // std::priority_queue gives the greatest: that shall be the cheapest, leftmost pair.
    bool operator<(const Candidate& other) const {
      return cost != other.cost ? cost > other.cost : left > other.left;
    }
  };

  Symbol& At(std::int32_t i) { return symbols_[static_cast<std::size_t>(i)]; }

  template <typename Find>
  void Offer(std::int32_t left, std::int32_t right, Find find) {
    const std::optional<Merge> merge = find(At(left), At(right));
    if (!merge.has_value()) return;
    queue_.push({merge->cost, left, right, At(left).length + At(right).length, merge->id});
  }

  std::vector<Symbol> symbols_;
  std::priority_queue<Candidate> queue_;
};

}  // namespace troupe
