// What one sequence's past says of its next steps: looks for the past steps whose routing was most
// like the present one's (route_history.h), and values an expert by how soon after each of them its
// layer used it. Where nothing resembles the present, what was used most in the last tokens
// decides. A step is the sequence's rows of one pass. Who shares the cache with it is echo.h's
// part.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "expert/cache/echo_settings.h"
#include "expert/cache/route_history.h"

namespace troupe {

class EchoOfSequence {
 public:
  static Bytes BytesFor(ExpertGrid grid, std::uint32_t steps = RouteHistory::kSteps);

  explicit EchoOfSequence(ExpertGrid grid, std::uint32_t steps = RouteHistory::kSteps,
                          const EchoSettings& settings = {});

  // A layer's asks follow each other; a step ends when layers begin again.
  void OnAsked(ExpertId id, std::uint32_t tokens);
  // The layer's asks are complete: values are worked out from them.
  void TakeIn();
  // How much the sequence is expected to need the expert.
  double Value(ExpertId id);

 private:
  static constexpr std::uint32_t kNoLayer = ~0u;
  static constexpr std::size_t kRemembered = 256;  // tokens after which a use counts nothing

  struct Expert {
    double value = 0;
    double recent = 0;               // share of the tokens that used it, as of `recent_at`
    std::uint64_t recent_at = 0;     // on its layer's clock of tokens
    std::uint64_t valued_after = 0;  // changes of its layer, plus one; 0: never
  };
  struct Layer {
    std::uint64_t changes = 0;  // to what its experts are worth
    std::uint64_t tokens = 0;
    std::uint64_t last_step = 0;
  };
  using Match = RouteHistory::Match;

  bool BeginsStep(ExpertId id) const;
  void CountRecent(Layer& layer, std::span<const std::uint32_t> experts,
                   std::span<const std::uint32_t> tokens, bool first);
  double Kept(std::uint64_t tokens) const { return tokens < kRemembered ? kept_[tokens] : 0; }
  void Listen();
  double WorthAfterMatches(ExpertId id) const;

  ExpertGrid grid_;
  EchoSettings settings_;
  RouteHistory history_;
  std::vector<Expert> experts_;
  std::vector<Layer> layers_;
  std::array<double, kRemembered> kept_;
  std::array<double, RouteHistory::kAhead> worth_;  // of a use, by steps ahead

  std::uint64_t step_ = 0;
  // The layer under way: what it asked for, and how much of that is in the history.
  std::uint32_t layer_ = kNoLayer;
  std::vector<std::uint32_t> asked_, tokens_;
  std::size_t taken_in_ = 0;
  // Of the present state of the history, unless stale.
  std::span<const RouteHistory::Match> matches_;
  std::vector<double> weights_;  // of the matches; their sum is 1
  bool stale_ = true;
};

}  // namespace troupe
