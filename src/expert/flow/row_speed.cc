#include "expert/flow/row_speed.h"

#include <algorithm>
#include <bit>

namespace troupe {
namespace {

// What prompts take of a mixed pass at least, whatever its decodes were expected to take.
constexpr double kLeastPromptShare = 0.05;
// How far one pass moves what is known of passes of other sizes, and the most it says of them.
constexpr double kDriftShare = 0.1, kMostDrift = 2;

void Blend(double& mean, double measured, double share) { mean += share * (measured - mean); }

}  // namespace

void RowCurve::Note(double rows, double seconds, double new_share) {
  const auto whole = static_cast<std::uint64_t>(std::max(rows, 1.0));
  const auto size = static_cast<std::size_t>(std::bit_width(whole)) - 1;
  Point& point = points_[std::min(size, points_.size() - 1)];
  if (point.rows == 0 || (point.once && seconds < point.seconds)) {
    point = {.rows = rows, .seconds = seconds, .once = point.rows == 0};
    return;
  }
  point.once = false;
  Blend(point.rows, rows, new_share);
  Blend(point.seconds, seconds, new_share);
}

void RowCurve::Drift(double factor) {
  for (Point& point : points_) point.seconds *= factor;
}

bool RowCurve::measured() const {
  return std::ranges::any_of(points_, [](const Point& point) { return point.rows > 0; });
}

double RowCurve::At(double rows) const {
  if (rows <= 0) return 0;
  Point before;  // none: no rows, no time
  double slope = 0;
  for (const Point& measured : points_) {
    if (measured.rows == 0) continue;
    // More rows never take less time: where they seem to, the means are of different moments.
    const Point next{.rows = measured.rows, .seconds = std::max(measured.seconds, before.seconds)};
    slope = (next.seconds - before.seconds) / (next.rows - before.rows);
    if (rows <= next.rows) return before.seconds + slope * (rows - before.rows);
    before = next;
  }
  // Beyond what was measured the last line goes on. Of one point it begins at no rows, so that time
  // which does not grow with the rows shows only when a second size was tried.
  return before.rows == 0 ? 0 : before.seconds + slope * (rows - before.rows);
}

RowSpeed RowSpeed::Even(double decode_seconds, double prompt_seconds) {
  RowSpeed speed;
  for (double rows = 1; rows < 1 << 15; rows *= 2) {
    speed.decode.Note(rows, rows * decode_seconds);
    speed.prompt.Note(rows, rows * prompt_seconds);
  }
  return speed;
}

void RowSpeedMeter::PassEnded(std::uint32_t decode_rows, std::uint32_t prompt_rows,
                              double seconds) {
  if (decode_rows + prompt_rows == 0 || seconds <= 0 || new_share_ <= 0) return;
  const double expected = speed_.Predict(decode_rows, prompt_rows);
  if (expected > 0) {
    const double ratio = std::clamp(seconds / expected, 1 / kMostDrift, kMostDrift);
    const double factor = 1 + kDriftShare * (ratio - 1);
    speed_.decode.Drift(factor);
    speed_.prompt.Drift(factor);
  }
  if (prompt_rows == 0) return speed_.decode.Note(decode_rows, seconds, new_share_);
  const double decodes = speed_.decode.At(decode_rows);
  const double prompts = std::max(seconds - decodes, kLeastPromptShare * seconds);
  speed_.prompt.Note(prompt_rows, prompts, new_share_);
}

}  // namespace troupe
