// How far what was measured may lie from the truth: means and shares with an interval that holds
// the true one 95 times of 100. Pure arithmetic: knows no model and no text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe {

// Without an end where there is too little to tell: the limits are infinite then.
struct Interval {
  double mean = 0;
  double least = 0, most = 0;

  bool operator==(const Interval&) const = default;
};

// The mean of numbers that come in a row in which neighbours are alike, as the tokens of a text
// are: an interval that took them for independent would be too narrow. So they are summed in
// blocks, and how far the blocks' means lie apart tells the error (the method of batch means, with
// Student's t for so few blocks; blocks may differ in length, a ratio estimate). It holds as far as
// blocks are independent of each other: windows of a text that are scored apart come near to it,
// pieces of one window less so.
class BlockMean {
 public:
  struct Block {
    std::size_t count = 0;
    double mean = 0;

    bool operator==(const Block&) const = default;
  };

  // A block ends after `length` numbers, and wherever EndBlock says.
  explicit BlockMean(std::size_t length);

  void Add(double x);
  void EndBlock();  // what follows does not belong with what came before

  Interval Get() const;
  std::size_t count() const { return count_ + block_count_; }
  std::size_t blocks() const { return ended_.size() + (block_count_ > 0 ? 1 : 0); }
  std::vector<Block> Blocks() const;  // with the one under way: two series are compared by them

 private:
  std::size_t length_;
  double block_sum_ = 0;
  std::size_t block_count_ = 0;  // numbers of the block under way
  std::vector<Block> ended_;
  // Of these: enough for the sum of (sum - count * mean)^2 over them.
  std::size_t count_ = 0;
  double sum_ = 0, squared_sums_ = 0, sums_by_counts_ = 0, squared_counts_ = 0;
};

// Blocks for `count` numbers of which runs of `run` belong together (the tokens of a window): a run
// each, or parts of one where that would make less than eight.
std::size_t BlockLength(std::size_t count, std::size_t run);

// Of `part` in `all` independent trials: Wilson's interval. Never wider than 0 to 1, and honest
// about none and about all of few.
Interval ShareInterval(std::uint64_t part, std::uint64_t all);

// The share right with B less that with A where both answered the same `all` questions: only those
// which one of them alone got right tell. Agresti and Min's interval (2005), which adds half a
// question to each of the four cases, so that few questions without a difference prove little.
Interval PairedShareDifference(std::uint64_t only_a, std::uint64_t only_b, std::uint64_t all);

// The value that Student's t with `freedom` degrees of freedom stays below 97.5 times of 100.
double StudentT975(std::size_t freedom);

}  // namespace troupe
