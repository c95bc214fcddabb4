#include "cluster/spot_sample.h"

#include <algorithm>

namespace troupe {
namespace {

// Unless all are wanted: of an answer, and answers that wait.
constexpr std::size_t kFewRows = 8, kFewAnswers = 8;

}  // namespace

void SpotSample::ForgetSuspectsBut(std::span<const std::uint64_t> starts) {
  std::erase_if(suspects_, [&](const auto& suspect) {
    return std::ranges::find(starts, suspect.first) == starts.end();
  });
}

std::vector<std::uint32_t> SpotSample::Draw(std::uint64_t start, std::size_t rows,
                                            std::size_t row_bytes) {
  const auto suspect = suspects_.find(start);
  if (suspect != suspects_.end() && suspect->second-- == 0) suspects_.erase(suspect);
  const bool wants_all = WantsAllOf(start);
  if (!wants_all && (share_ <= 0 || rng_.Uniform() >= share_)) return {};
  const std::size_t fit = std::max<std::size_t>(1, most_bytes_ / row_bytes);
  std::size_t left = std::min({rows, fit, wants_all ? rows : kFewRows});
  left_out_ += rows - left;
  std::vector<std::uint32_t> drawn;
  for (std::size_t row = 0; left > 0; ++row) {
    if (rng_.Below(rows - row) >= left) continue;
    drawn.push_back(static_cast<std::uint32_t>(row));
    --left;
  }
  return drawn;
}

void SpotSample::Keep(SpotCheck check) {
  ++offered_;
  const bool counts = WantsAllOf(check.start) || kept_.size() < kFewAnswers;
  if (counts && (kept_.empty() || bytes_ + check.bytes() <= most_bytes_)) {
    bytes_ += check.bytes();
    kept_.push_back(std::move(check));
    return;
  }
  if (const std::uint64_t place = rng_.Below(offered_); place < kept_.size()) {
    SpotCheck& other = kept_[place];
    if (bytes_ - other.bytes() + check.bytes() <= most_bytes_) {
      bytes_ = bytes_ - other.bytes() + check.bytes();
      std::swap(other, check);
    }
  }
  left_out_ += check.rows;
}

std::vector<SpotCheck> SpotSample::Take() {
  bytes_ = 0;
  offered_ = 0;
  return std::exchange(kept_, {});
}

}  // namespace troupe
