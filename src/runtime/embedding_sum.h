// The vector of a text: what a model's last layer makes of its tokens, pooled to one row of length
// 1. Rows come in the order of the text, in any number of parts, and the bytes are the same for
// each way of cutting it.
#pragma once

#include <troupe/request.h>

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace troupe {

class EmbeddingSum {
 public:
  explicit EmbeddingSum(Pooling pooling) : pooling_(pooling) {}

  void Add(std::span<const float> row) {
    ++rows_;
    if (sum_.empty() || pooling_ == Pooling::kLast) {
      sum_.assign(row.begin(), row.end());
      return;
    }
    for (std::size_t i = 0; i < row.size(); ++i) sum_[i] += row[i];
  }

  // A text whose rows cancel each other has zeros.
  std::vector<float> Value() const {
    double squares = 0;
    for (const float x : sum_) squares += static_cast<double>(x) * x;
    const double length = std::sqrt(squares);
    std::vector<float> value = sum_;
    for (float& x : value) x = length > 0 ? static_cast<float>(x / length) : 0.0f;
    return value;
  }

  std::size_t rows() const { return rows_; }

 private:
  Pooling pooling_;
  std::vector<float> sum_;  // a mean's direction is its sum's
  std::size_t rows_ = 0;
};

}  // namespace troupe
