#include "expert/flow/row_speed.h"

namespace troupe {
namespace {

// Of a new measurement in the mean: the last ten passes or so decide.
constexpr double kNewShare = 0.2;

void Blend(double& mean, double measured) {
  mean = mean == 0 ? measured : mean + kNewShare * (measured - mean);
}

}  // namespace

void RowSpeedMeter::PassEnded(std::uint32_t decode_rows, std::uint32_t prompt_rows,
                              double seconds) {
  if (decode_rows + prompt_rows == 0 || seconds <= 0) return;
  // A phase that was never measured is taken to cost what the other one does.
  const auto expected = [](double own, double other) {
    if (own > 0) return own;
    return other > 0 ? other : 1.0;
  };
  const double decode = expected(speed_.decode_seconds, speed_.prompt_seconds);
  const double prompt = expected(speed_.prompt_seconds, speed_.decode_seconds);
  const double ratio = seconds / (decode_rows * decode + prompt_rows * prompt);
  if (decode_rows > 0) Blend(speed_.decode_seconds, decode * ratio);
  if (prompt_rows > 0) Blend(speed_.prompt_seconds, prompt * ratio);
}

}  // namespace troupe
