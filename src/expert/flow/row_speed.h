// How long a pass takes by its rows, learned from the passes that were run. Rows share experts: the
// first few rows of a prompt bring in most of a layer's, and those that follow cost little more. So
// the time is a curve over the number of rows, one for decodes and one for prompts, and not a time
// a row. Running means that follow what passes are like now. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace troupe {

// Of a new measurement in the mean: the last ten passes or so decide.
inline constexpr double kUsualPassShare = 0.2;

// Seconds by the number of rows: what was measured near it, lines between, and a line on.
class RowCurve {
 public:
  void Note(double rows, double seconds, double new_share = kUsualPassShare);
  // Passes of other sizes have become slower or faster, too: times a factor.
  void Drift(double factor);
  double At(double rows) const;  // never falls; 0 of a curve without a measurement
  bool measured() const;

  bool operator==(const RowCurve&) const = default;

 private:
  struct Point {
    double rows = 0, seconds = 0;  // means; rows 0: not measured
    bool once = false;             // a first pass of a size may be slow, as it touches new memory
    bool operator==(const Point&) const = default;
  };
  std::array<Point, 16> points_;  // by the power of two in the number of rows
};

struct RowSpeed {
  RowCurve decode, prompt;

  // Where every row takes as long as the next.
  static RowSpeed Even(double decode_seconds, double prompt_seconds);
  double Predict(std::uint32_t decode_rows, std::uint32_t prompt_rows) const {
    return decode.At(decode_rows) + prompt.At(prompt_rows);
  }
  bool operator==(const RowSpeed&) const = default;
};

class RowSpeedMeter {
 public:
  // A pass has ended. Beside decodes, prompts take what the decodes alone would not have taken.
  void PassEnded(std::uint32_t decode_rows, std::uint32_t prompt_rows, double seconds);

  // Of the passes to come in the means of their sizes: more where they are run to be measured, and
  // nothing (0) of those that are not like others.
  void set_new_share(double share) { new_share_ = share; }

  const RowSpeed& speed() const { return speed_; }

 private:
  RowSpeed speed_;
  double new_share_ = kUsualPassShare;
};

}  // namespace troupe
