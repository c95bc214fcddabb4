#include "troupe/transfer_speed.h"

#include <fmt/core.h>

namespace troupe {
namespace {

constexpr double kSpeedWindow = 10.0;  // seconds
constexpr double kLeast = 0.2;         // below it a rate is noise

}  // namespace

void TransferSpeed::Note(double seconds, Bytes done) {
  // What was thrown away has to come again.
  if (!points_.empty() && done < points_.back().done) points_.clear();
  points_.push_back({seconds, done});
  while (points_.size() > 2 && points_[1].seconds <= seconds - kSpeedWindow) points_.pop_front();
}

std::optional<double> TransferSpeed::bytes_per_second() const {
  if (points_.empty()) return std::nullopt;
  const double seconds = points_.back().seconds - points_.front().seconds;
  if (seconds < kLeast) return std::nullopt;
  return AsDouble(points_.back().done - points_.front().done) / seconds;
}

std::string TransferSpeed::Text(Bytes left) const {
  const std::optional<double> rate = bytes_per_second();
  if (!rate) return "just begun";
  const std::string speed = ToString(Bytes(static_cast<std::uint64_t>(*rate))) + "/s";
  if (*rate < 1) return "nothing comes";
  return fmt::format("{}, {} left", speed, TimeText(AsDouble(left) / *rate));
}

std::string TimeText(double seconds) {
  if (seconds < 100) return fmt::format("{:.0f} s", seconds);
  if (seconds < 6000) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

}  // namespace troupe
