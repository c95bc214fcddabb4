#include "cluster/calls/running_line.h"

namespace troupe {

void RunningLine::Add(double x, double y) {
  const auto add = [this](double& sum, double value) { sum = sum * keep_ + value; };
  add(weight_, 1);
  add(x_, x);
  add(y_, y);
  add(xx_, x * x);
  add(xy_, x * y);
}

RunningLine::Line RunningLine::Fit() const {
  constexpr double kAlike = 1e-6;  // of the square of x: then nothing is known of the slope
  if (!measured()) return {};
  const double spread = weight_ * xx_ - x_ * x_;
  if (spread <= kAlike * weight_ * xx_) return {.at_zero = y_ / weight_, .slope = 0};
  const double slope = (weight_ * xy_ - x_ * y_) / spread;
  if (slope < 0) return {.at_zero = y_ / weight_, .slope = 0};
  const double at_zero = (y_ - slope * x_) / weight_;
  if (at_zero < 0) return {.at_zero = 0, .slope = xy_ / xx_};
  return {.at_zero = at_zero, .slope = slope};
}

double RunningLine::at_zero() const { return Fit().at_zero; }
double RunningLine::slope() const { return Fit().slope; }

}  // namespace troupe
