#include "expert/prefetch/governor.h"

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

void PrefetchGovernor::OnLayer(double seconds, double demand_seconds, double needed_seconds) {
  const double idle = std::max(0.0, seconds - demand_seconds);
  if (!std::exchange(measured_idle_, true)) {
    idle_seconds_ = idle;
    layer_seconds_ = seconds;
    needed_seconds_ = needed_seconds;
  }
  Mix(idle_seconds_, idle, kWeight);
  Mix(layer_seconds_, seconds, kWeight);
  Mix(needed_seconds_, needed_seconds, kWeight);
}

void PrefetchGovernor::OnLoad(double seconds) {
  if (load_seconds_ == 0) load_seconds_ = seconds;
  Mix(load_seconds_, seconds, kWeight);
}

void PrefetchGovernor::OnUse(bool useful) { Mix(wasted_, useful ? 0.0 : 1.0, kUsedWeight); }

void PrefetchGovernor::Enter(Mode mode, std::uint32_t tokens) {
  mode_ = mode;
  left_ = tokens;
  settling_ = true;
}

void PrefetchGovernor::Judge() {
  const TokenComparison::Difference slower = tokens_compared_.Compare();
  const double least =
      std::max(options_.sure_by * slower.error, options_.slower_by * token_seconds_);
  tokens_compared_.Age();
  if (slower.seconds > least) {
    rest_ = std::clamp(2 * rest_, options_.rest_tokens, options_.longest_rest);
    on_ = 0;
    ++rests_;
    return Enter(Mode::kRest, rest_);
  }
  rest_ = 0;
  const bool pays = slower.seconds < -least;
  on_ = pays ? std::clamp(2 * on_, 2 * options_.on_tokens, options_.longest_on) : 0;
  Enter(Mode::kOn, std::max(on_, options_.on_tokens));
}

void PrefetchGovernor::OnToken(double seconds, std::uint32_t loaded) {
  if (left_ == 0) left_ = kFirstOn;  // the very first token
  ++tokens_;
  if (token_seconds_ == 0) token_seconds_ = seconds;
  Mix(token_seconds_, seconds, kWeight);
  // Only tokens that pass near each other are compared: in a long talk they all become slower.
  const bool near = left_ <= options_.on_tokens;
  if (!std::exchange(settling_, false) && near) {
    using Kind = TokenComparison::Kind;
    tokens_compared_.Add(resting() ? Kind::kWithout : Kind::kWith, loaded, seconds);
  }
  if (--left_ > 0) return;
  switch (mode_) {
    case Mode::kOn:
      return Enter(Mode::kTrial, options_.off_tokens);
    case Mode::kTrial:
      return Judge();
    case Mode::kRest:
      return Enter(Mode::kOn, options_.on_tokens);
  }
}

void PrefetchGovernor::OnOtherPasses() {
  tokens_compared_ = {};
  token_seconds_ = 0;
  settling_ = true;
  if (mode_ == Mode::kTrial) Enter(Mode::kOn, options_.on_tokens);
}

std::uint32_t PrefetchGovernor::Allowance() const {
  if (resting() || load_seconds_ <= 0) return 0;
  const double fitting = std::min<double>(kMostAhead, idle_seconds_ / load_seconds_);
  if (wasted_ <= options_.most_wasted) {
    // What begins within the idle time of the layers until its own is there when that asks. A tenth
    // of a load is none: running means never come to nothing.
    return static_cast<std::uint32_t>(std::ceil(std::max(0.0, fitting * LayersAhead() - 0.1)));
  }
  // Without any it would never learn that the guesses have become better.
  return fitting > 0 && tokens_ % options_.probe_every == 0 ? 1 : 0;
}

double PrefetchGovernor::LoadsALayer() const {
  if (load_seconds_ <= 0 || layer_seconds_ <= 0) return std::numeric_limits<double>::infinity();
  return layer_seconds_ / load_seconds_;
}

// A load of an expert that is not asked for costs what is needed behind it as long as it takes, if
// there is any; one that is asked for saves at most as much.
double PrefetchGovernor::LeastOdds() const {
  if (layer_seconds_ <= 0) return 0;
  const double busy = std::min(1.0, needed_seconds_ / layer_seconds_);
  return busy / (1 + busy);
}

std::uint32_t PrefetchGovernor::LayersAhead() const {
  if (resting()) return 0;
  if (layer_seconds_ <= 0 || load_seconds_ <= 0) return 1;
  const double layers = (needed_seconds_ + load_seconds_) / layer_seconds_;
  return 1 + static_cast<std::uint32_t>(std::min(16.0, layers));
}

}  // namespace troupe
