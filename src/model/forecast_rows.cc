#include "model/forecast_rows.h"

#include <algorithm>

namespace troupe {
namespace {

// Picks `count` of `all` rows that come one by one, spread evenly, the last among them.
class Spread {
 public:
  Spread(std::size_t count, std::size_t all) : count_(count), all_(all) {}

  bool Takes() {
    const bool takes = picked_ < count_ && seen_ == (picked_ + 1) * all_ / count_ - 1;
    ++seen_;
    if (takes) ++picked_;
    return takes;
  }

 private:
  std::size_t count_, all_;
  std::size_t seen_ = 0, picked_ = 0;
};

}  // namespace

std::size_t ChooseForecastRows(Batch batch, std::size_t width, std::span<std::uint32_t> rows) {
  std::size_t decode = 0, prompt = 0;
  for (const RowGroup& group : batch) {
    (group.phase == Phase::kDecode ? decode : prompt) += group.Rows(width);
  }
  const std::size_t count = std::min(rows.size(), decode + prompt);
  Spread of_decode(std::min(decode, count), decode);
  Spread of_prompt(count - std::min(decode, count), prompt);
  std::uint32_t row = 0;
  std::size_t chosen = 0;
  for (const RowGroup& group : batch) {
    for (std::size_t i = 0; i < group.Rows(width); ++i, ++row) {
      if ((group.phase == Phase::kDecode ? of_decode : of_prompt).Takes()) rows[chosen++] = row;
    }
  }
  return chosen;
}

}  // namespace troupe
