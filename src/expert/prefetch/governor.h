// How much may be read ahead. Prefetching uses a link that a layer may need the next moment, and
// slots that something useful leaves: so the governor spends only the time in which the link was
// measured idle, reads hardly anything ahead while too much of it was read for nothing, and stops
// when tokens become slower with prefetching than without, which it finds out by leaving it off now
// and then.
//
// Tokens differ far more by how many of their experts are not in memory than by prefetching: they
// are compared with others that needed as many loads (token_comparison.h), and a difference counts
// when it is larger than chance explains.
//
// Pure: times come in as arguments.
#pragma once

#include <cstdint>
#include <string>

#include "expert/prefetch/token_comparison.h"

namespace troupe {

struct GovernorOptions {
  double most_wasted = 0.6;        // of the loads made ahead; above it
  std::uint32_t probe_every = 16;  // tokens, in one of which a load at a time may go
  double slower_by = 0.01;         // of a token's time, from which it stops
  double sure_by = 2.5;            // standard errors, as a trial is few tokens
  std::uint32_t on_tokens = 24;    // between two trials without; doubles while they speak for it
  std::uint32_t longest_on = 512;
  std::uint32_t off_tokens = 6;    // of a trial
  std::uint32_t rest_tokens = 32;  // after a trial that went against it; doubles each time
  std::uint32_t longest_rest = 4096;
};

class PrefetchGovernor {
 public:
  explicit PrefetchGovernor(const GovernorOptions& options = {}) : options_(options) {}

  // A layer took this long from its routing to the next layer's; the link takes so long for what
  // was read on demand in it, and for all that it needed, read on demand or ahead.
  void OnLayer(double seconds, double demand_seconds, double needed_seconds);
  // One expert alone takes the link this long.
  void OnLoad(double seconds);
  // A load made ahead was asked for, or was not.
  void OnUse(bool useful);
  // A decode pass, mostly of one token, is complete; this number of its experts had to be loaded,
  // ahead or on demand.
  void OnToken(double seconds, std::uint32_t loaded);
  // The next passes have another number of tokens: they say nothing about those before. A trial
  // under way is given up; when batches keep changing none is ever completed, and what limits
  // prefetching then is the idle time of the link and the share that was wasted.
  void OnOtherPasses();

  // Loads that a layer has time for; without end before both were measured.
  double LoadsALayer() const;
  // Loads made ahead that may be under way at once.
  std::uint32_t Allowance() const;
  // How likely an expert has to be for its load: the busier the link is with what layers need, the
  // surer. What was read ahead counts, too: else a link that prefetching fills would look idle.
  double LeastOdds() const;
  // From how many layers ahead a load would come in time, behind what the layer under way needs;
  // none while it rests. While it only probes they are predicted all the same: odds are learned
  // from forecasts, not from loads.
  std::uint32_t LayersAhead() const;
  bool resting() const { return mode_ != Mode::kOn; }
  std::uint64_t rests() const { return rests_; }
  double wasted_share() const { return wasted_; }

 private:
  enum class Mode { kOn, kTrial, kRest };
  void Enter(Mode mode, std::uint32_t tokens);
  // What a trial that has just ended leads to.
  void Judge();

  GovernorOptions options_;
  double idle_seconds_ = 0;  // of the link, per layer; running means
  double layer_seconds_ = 0;
  double needed_seconds_ = 0;
  double load_seconds_ = 0;
  double wasted_ = 0;
  bool measured_idle_ = false;
  Mode mode_ = Mode::kOn;
  std::uint32_t left_ = 0;    // tokens of the mode under way
  std::uint32_t tokens_ = 0;  // in all
  bool settling_ = true;      // the first token of a mode still bears the marks of the one before
  TokenComparison tokens_compared_;
  double token_seconds_ = 0;  // running mean
  std::uint32_t on_ = 0, rest_ = 0;
  std::uint64_t rests_ = 0;
};

}  // namespace troupe
