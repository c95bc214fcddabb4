#include "expert/prefetch_governor.h"

#include <algorithm>
#include <cmath>
#include <limits>
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
  const double busy = seconds > 0 ? std::min(1.0, demand_seconds / seconds) : 0;
  if (!std::exchange(measured_idle_, true)) {
    idle_seconds_ = idle;
    layer_seconds_ = seconds;
    busy_share_ = busy;
  }
  Mix(idle_seconds_, idle, kWeight);
  Mix(layer_seconds_, seconds, kWeight);
  Mix(busy_share_, busy, kWeight);
}

void PrefetchGovernor::LoadTook(double seconds) {
  if (load_seconds_ == 0) load_seconds_ = seconds;
  Mix(load_seconds_, seconds, kWeight);
}

void PrefetchGovernor::Used(bool useful) { Mix(wasted_, useful ? 0.0 : 1.0, kUsedWeight); }

void PrefetchGovernor::Times::Add(double seconds) {
  count += 1;
  sum += seconds;
  squares += seconds * seconds;
}

void PrefetchGovernor::Times::Age() {
  count /= 2;
  sum /= 2;
  squares /= 2;
}

double PrefetchGovernor::Times::SquaredError() const {
  if (count <= 1) return 0;
  const double variance = std::max(0.0, squares / count - Mean() * Mean());
  return variance / (count - 1);
}

void PrefetchGovernor::Enter(Mode mode, std::uint32_t tokens) {
  mode_ = mode;
  left_ = tokens;
  settling_ = true;
}

bool PrefetchGovernor::Harms() const {
  const double chance = 2 * std::sqrt(with_.SquaredError() + without_.SquaredError());
  const double slower = with_.Mean() - without_.Mean();
  return slower > std::max(chance, options_.slower_by * token_seconds_);
}

void PrefetchGovernor::TokenTook(double seconds, std::uint32_t loaded) {
  if (left_ == 0) left_ = kFirstOn;  // the very first token
  ++tokens_;
  if (token_seconds_ == 0) token_seconds_ = seconds;
  Mix(token_seconds_, seconds, kWeight);
  if (!std::exchange(settling_, false)) {
    (resting() ? without_ : with_).Add(seconds - loaded * load_seconds_);
  }
  if (--left_ > 0) return;
  switch (mode_) {
    case Mode::kOn:
      Enter(Mode::kTrial, options_.off_tokens);
      break;
    case Mode::kTrial: {
      const bool harms = Harms();
      with_.Age();
      without_.Age();
      rest_ = harms ? std::clamp(2 * rest_, options_.rest_tokens, options_.longest_rest) : 0;
      rests_ += harms ? 1 : 0;
      Enter(harms ? Mode::kRest : Mode::kOn, harms ? rest_ : options_.on_tokens);
      break;
    }
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
  // Without any it would never learn that the guesses have become better.
  return fitting > 0 && tokens_ % options_.probe_every == 0 ? 1 : 0;
}

double PrefetchGovernor::LoadsALayer() const {
  if (load_seconds_ <= 0 || layer_seconds_ <= 0) return std::numeric_limits<double>::infinity();
  return layer_seconds_ / load_seconds_;
}

// A load of an expert that is not asked for costs the demand behind it as long as it takes, if
// there is any; one that is asked for saves at most as much.
double PrefetchGovernor::LeastOdds() const { return busy_share_ / (1 + busy_share_); }

std::uint32_t PrefetchGovernor::LayersAhead() const {
  if (resting()) return 0;
  if (layer_seconds_ <= 0 || load_seconds_ <= 0) return 1;
  return 1 + static_cast<std::uint32_t>(std::min(16.0, load_seconds_ / layer_seconds_));
}

}  // namespace troupe
