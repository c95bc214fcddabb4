// What happened when, in samples of one length. A run may take any time: when there are many
// samples, each two become one and the length doubles, so memory does not follow the time.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "sim/result.h"

namespace troupe {

class Timeline {
 public:
  static constexpr std::size_t kMostSamples = 1 << 14;

  explicit Timeline(double interval_s) : interval_s_(interval_s) {}

  // The sample that `seconds`, which never goes back, belongs to.
  TimelineSample& At(double seconds) {
    while (seconds / interval_s_ >= static_cast<double>(kMostSamples)) Halve();
    const auto index = static_cast<std::size_t>(seconds / interval_s_);
    while (samples_.size() <= index) {
      samples_.push_back({.seconds = static_cast<double>(samples_.size()) * interval_s_});
    }
    return samples_[index];
  }
  std::vector<TimelineSample> Take() && { return std::move(samples_); }

 private:
  void Halve() {
    interval_s_ *= 2;
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      if (i % 2 == 0) {
        samples_[i / 2] = samples_[i];
        continue;
      }
      TimelineSample& into = samples_[i / 2];
      into.local += samples_[i].local;
      into.remote += samples_[i].remote;
      into.answered += samples_[i].answered;
      into.latency_sum += samples_[i].latency_sum;
    }
    samples_.resize((samples_.size() + 1) / 2);
  }

  double interval_s_;
  std::vector<TimelineSample> samples_;
};

}  // namespace troupe
