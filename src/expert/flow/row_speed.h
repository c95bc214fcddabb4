// How long a row of a pass takes, learned from passes that had rows of both phases. Experts are
// shared by the rows of a pass, so a row's time depends on its neighbours: these are running means
// that follow what passes are like now, not constants of the machine. Pure.
#pragma once

#include <cstdint>

namespace troupe {

// Zero: not measured yet.
struct RowSpeed {
  double decode_seconds = 0;
  double prompt_seconds = 0;

  double Predict(std::uint32_t decode_rows, std::uint32_t prompt_rows) const {
    return decode_rows * decode_seconds + prompt_rows * prompt_seconds;
  }
  bool operator==(const RowSpeed&) const = default;
};

class RowSpeedMeter {
 public:
  // A pass has ended. Its time is divided in proportion to what was expected of either phase.
  void PassEnded(std::uint32_t decode_rows, std::uint32_t prompt_rows, double seconds);

  const RowSpeed& speed() const { return speed_; }

 private:
  RowSpeed speed_;
};

}  // namespace troupe
