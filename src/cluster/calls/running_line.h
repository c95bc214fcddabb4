// A straight line through measurements, newer ones counting more; neither its value at 0 nor its
// slope is below 0, as for costs. Pure.
#pragma once

namespace troupe {

class RunningLine {
 public:
  // What is left of a measurement's weight after each further one.
  explicit RunningLine(double keep = 0.98) : keep_(keep) {}

  void Add(double x, double y);

  bool measured() const { return weight_ > 0; }
  double at_zero() const;
  double slope() const;

 private:
  struct Line {
    double at_zero = 0, slope = 0;
  };
  Line Fit() const;

  double keep_;
  double weight_ = 0, x_ = 0, y_ = 0, xx_ = 0, xy_ = 0;  // sums
};

}  // namespace troupe
