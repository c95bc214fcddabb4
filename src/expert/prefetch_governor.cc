#include "expert/prefetch_governor.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace troupe {
namespace {

constexpr double kWeight = 0.05;       // of the latest in a running mean
constexpr double kUsedWeight = 0.01;   // loads are many more than layers of a token
constexpr std::uint32_t kFirstOn = 8;  // tokens until the first trial: a short run profits too
constexpr std::uint32_t kMostAhead = 64;

void Mix(double& mean, double latest, double weight) { mean += weight * (latest - mean); }

}  // namespace

void PrefetchGovernor::LayerRan(double seconds, double demand_seconds) {
  const double idle = std::max(0.0, seconds - demand_seconds);
  if (!std::exchange(measured_idle_, true)) idle_seconds_ = idle;
  Mix(idle_seconds_, idle, kWeight);
}

void PrefetchGovernor::LoadTook(double seconds) {
  if (load_seconds_ == 0) load_seconds_ = seconds;
  Mix(load_seconds_, seconds, kWeight);
}

void PrefetchGovernor::Used(bool useful) { Mix(wasted_, useful ? 0.0 : 1.0, kUsedWeight); }

void PrefetchGovernor::Enter(Mode mode, std::uint32_t tokens) {
  mode_ = mode;
  left_ = tokens;
  settling_ = true;
  seconds_ = 0;
  tokens_ = 0;
}

void PrefetchGovernor::Compare() {
  const double off_mean = seconds_ / tokens_;
  if (on_mean_ > options_.slower_is * off_mean) {
    rest_ = std::clamp(2 * rest_, options_.rest_tokens, options_.longest_rest);
    ++rests_;
    Enter(Mode::kRest, rest_);
  } else {
    rest_ = 0;
    Enter(Mode::kOn, options_.on_tokens);
  }
}

void PrefetchGovernor::TokenTook(double seconds) {
  if (left_ == 0) left_ = kFirstOn;  // the very first token
  if (!std::exchange(settling_, false)) {
    seconds_ += seconds;
    ++tokens_;
  }
  if (--left_ > 0) return;
  switch (mode_) {
    case Mode::kOn:
      on_mean_ = seconds_ / std::max(1u, tokens_);
      Enter(Mode::kTrial, options_.off_tokens);
      break;
    case Mode::kTrial:
      Compare();
      break;
    case Mode::kRest:
      Enter(Mode::kOn, options_.on_tokens);
      break;
  }
}

std::uint32_t PrefetchGovernor::Allowance() const {
  if (resting() || load_seconds_ <= 0) return 0;
  const double fitting = std::min<double>(kMostAhead, idle_seconds_ / load_seconds_);
  if (wasted_ <= options_.most_wasted) {
    // What begins within the idle time ends within the next layer's, where it is still ahead.
    return static_cast<std::uint32_t>(std::ceil(fitting));
  }
  return fitting >= 1 ? 1 : 0;  // one at a time until the guesses are better
}

}  // namespace troupe
