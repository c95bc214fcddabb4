#include "split/codec/code_entropy.h"

#include <cmath>

#include "base/check.h"
#include "split/codec/code_groups.h"
#include "split/codec/coded_rows.h"

namespace troupe {

void CodeEntropy::Add(const StateFrame& frame, std::span<const std::byte> rows) {
  const std::vector<std::uint8_t> codes = ColumnsOf(frame, rows).codes;
  const std::size_t numbers = codes.size() / frame.rows;
  const std::size_t groups = (numbers + kCodedTogether - 1) / kCodedTogether;
  if (counts_.empty()) counts_.resize(groups);
  TROUPE_CHECK(counts_.size() == groups);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    ++counts_[i % numbers / kCodedTogether][codes[i]];
  }
}

double CodeEntropy::BitsACode() const {
  double bits = 0, all = 0;
  for (const auto& counts : counts_) {
    double codes = 0;
    for (const std::uint64_t count : counts) codes += static_cast<double>(count);
    for (const std::uint64_t count : counts) {
      if (count > 0) {
        bits += static_cast<double>(count) * std::log2(codes / static_cast<double>(count));
      }
    }
    all += codes;
  }
  return all > 0 ? bits / all : 0;
}

}  // namespace troupe
