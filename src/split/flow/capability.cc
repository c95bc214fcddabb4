#include "split/flow/capability.h"

#include <algorithm>
#include <cmath>

namespace troupe {
namespace {

// A battery gives all until it is half empty, and little when it is nearly so.
constexpr double kFullPower = 0.5, kLeastPower = 0.1;
constexpr double kAway = 0.1;

}  // namespace

Capability CapabilityOf(const DeviceShare& share, const ExpertNeeds& needs,
                        const CapabilityLimits& limits) {
  Capability found;
  double experts = std::floor(limits.most * needs.experts);
  found.limit = "--most-experts";
  const auto allow = [&](double most, const char* why) {
    if (most >= experts) return;
    experts = std::max(std::floor(most), 0.0);
    found.limit = why;
  };
  if (needs.bytes > Bytes()) {
    allow(static_cast<double>(share.memory.count() / needs.bytes.count()), "memory");
  }
  if (needs.seconds > 0) {
    const double speed = std::max(share.processors * share.power, 1e-9);
    found.token_seconds = needs.seconds * needs.a_token / speed;
    if (found.token_seconds > limits.token_seconds) {
      allow(limits.most * needs.experts * limits.token_seconds / found.token_seconds, "speed");
    }
  }
  found.experts = static_cast<std::uint32_t>(experts);
  return found;
}

double BatteryShare(std::optional<double> battery, bool discharging) {
  if (!battery || !discharging) return 1;
  return std::clamp(*battery / kFullPower, kLeastPower, 1.0);
}

double CapShare(std::optional<double> cap_watts, std::optional<double> cap_of_then) {
  if (!cap_watts || !cap_of_then || *cap_of_then <= 0) return 1;
  return std::clamp(*cap_watts / *cap_of_then, kLeastPower, 1.0);
}

double SteadyNumber::Follow(double value, Nanos now) {
  if (!held_) held_ = value;
  const bool is_away = std::abs(value - *held_) > kAway * std::abs(*held_);
  const bool above = value > *held_;
  if (!is_away || (away_since_ && above != away_above_)) away_since_.reset();
  if (!is_away) return *held_;
  away_above_ = above;
  if (!away_since_) away_since_ = now;
  if (now - *away_since_ >= lasting_) {
    held_ = value;
    away_since_.reset();
  }
  return *held_;
}

}  // namespace troupe
