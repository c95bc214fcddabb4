#include "lab/intervals.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace troupe {
namespace {

constexpr double kNormal975 = 1.959963984540054;
constexpr std::size_t kLeastBlocks = 8;

Interval Around(double mean, double half_width) {
  return {.mean = mean, .least = mean - half_width, .most = mean + half_width};
}

Interval Unknown(double mean) { return Around(mean, std::numeric_limits<double>::infinity()); }

}  // namespace

BlockMean::BlockMean(std::size_t length) : length_(length) { TROUPE_CHECK(length > 0); }

void BlockMean::Add(double x) {
  block_sum_ += x;
  if (++block_count_ == length_) EndBlock();
}

void BlockMean::EndBlock() {
  if (block_count_ == 0) return;
  const auto n = static_cast<double>(block_count_);
  ended_.push_back({.count = block_count_, .mean = block_sum_ / n});
  count_ += block_count_;
  sum_ += block_sum_;
  squared_sums_ += block_sum_ * block_sum_;
  sums_by_counts_ += block_sum_ * n;
  squared_counts_ += n * n;
  block_sum_ = 0;
  block_count_ = 0;
}

Interval BlockMean::Get() const {
  BlockMean ended = *this;
  ended.EndBlock();
  if (ended.count_ == 0) return Unknown(0);
  const auto n = static_cast<double>(ended.count_);
  const auto blocks = static_cast<double>(ended.ended_.size());
  const double mean = ended.sum_ / n;
  if (ended.ended_.size() < 2) return Unknown(mean);
  // Rounding may leave a hair below zero where all blocks are equal.
  const double squares = std::max(0.0, ended.squared_sums_ - 2 * mean * ended.sums_by_counts_ +
                                           mean * mean * ended.squared_counts_);
  const double error = std::sqrt(blocks / (blocks - 1) * squares) / n;
  return Around(mean, StudentT975(ended.ended_.size() - 1) * error);
}

std::vector<BlockMean::Block> BlockMean::Blocks() const {
  BlockMean ended = *this;
  ended.EndBlock();
  return ended.ended_;
}

std::size_t BlockLength(std::size_t count, std::size_t run) {
  return std::max<std::size_t>(1, std::min(run, count / kLeastBlocks));
}

Interval ShareInterval(std::uint64_t part, std::uint64_t all) {
  TROUPE_CHECK(part <= all);
  if (all == 0) return {.mean = 0, .least = 0, .most = 1};
  const auto n = static_cast<double>(all);
  const double share = static_cast<double>(part) / n, z2 = kNormal975 * kNormal975;
  const double middle = (share + z2 / (2 * n)) / (1 + z2 / n);
  const double half =
      kNormal975 * std::sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n);
  return {.mean = share,
          .least = part == 0 ? 0 : std::max(0.0, middle - half),
          .most = part == all ? 1 : std::min(1.0, middle + half)};
}

Interval PairedShareDifference(std::uint64_t only_a, std::uint64_t only_b, std::uint64_t all) {
  TROUPE_CHECK(only_a + only_b <= all);
  if (all == 0) return {.mean = 0, .least = -1, .most = 1};
  const double a = static_cast<double>(only_a) + 0.5, b = static_cast<double>(only_b) + 0.5;
  const double n = static_cast<double>(all) + 2;
  const double middle = (b - a) / n;
  const double half = kNormal975 * std::sqrt((a + b) / n - middle * middle) / std::sqrt(n);
  return {.mean = (static_cast<double>(only_b) - static_cast<double>(only_a)) /
                  static_cast<double>(all),
          .least = std::max(-1.0, middle - half),
          .most = std::min(1.0, middle + half)};
}

double StudentT975(std::size_t freedom) {
  TROUPE_CHECK(freedom > 0);
  constexpr std::array kSmall = {12.706204736, 4.302652730, 3.182446305, 2.776445105, 2.570581836};
  if (freedom <= kSmall.size()) return kSmall[freedom - 1];
  // Its expansion in 1/freedom about the normal distribution: right to 1.1e-4 from here on.
  const double z = kNormal975, z2 = z * z, v = static_cast<double>(freedom);
  const double g1 = z * (z2 + 1) / 4;
  const double g2 = z * ((5 * z2 + 16) * z2 + 3) / 96;
  const double g3 = z * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384;
  const double g4 = z * ((((79 * z2 + 776) * z2 + 1482) * z2 - 1920) * z2 - 945) / 92160;
  return z + (g1 + (g2 + (g3 + g4 / v) / v) / v) / v;
}

}  // namespace troupe
