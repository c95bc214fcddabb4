// Guesses which experts a layer will choose before its tokens get there, so that their loads can
// begin early. A predictor sees what every layer chose and, if it asks for it, what the gates of
// the next layers say of the stream as it is now. A guess never changes an answer: it decides only
// when bytes are read. One file a predictor.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "expert/cache/eviction_policy.h"
#include "expert/expert_id.h"
#include "expert/layer_choices.h"
#include "expert/pass_facts.h"

namespace troupe {

// How many layers ahead a gate is asked at most.
inline constexpr std::uint32_t kMostLayersAhead = 3;
// Of how many tokens of a pass; more would say little that is new.
inline constexpr std::size_t kMostForecastRows = 32;

// What a gate says of some tokens, of a long prompt a sample of them: a row a token, in which the
// experts that rank highest are chosen.
struct GateScores {
  std::uint32_t experts = 0;
  std::span<const float> scores;

  std::size_t rows() const { return experts == 0 ? 0 : scores.size() / experts; }
  std::span<const float> Row(std::size_t i) const { return scores.subspan(i * experts, experts); }
};

struct Guess {
  std::uint32_t expert = 0;
  // Of how much use it is expected to be; comparable within one answer only.
  float weight = 0;
  // One of those that would be chosen if the guess were right, not only a likely further one.
  bool expected = false;

  bool operator==(const Guess&) const = default;
};

class Predictor {
 public:
  virtual ~Predictor() = default;
  virtual std::string_view name() const = 0;
  // Of how many layers ahead it wants the gates' forecasts; those without see the next layer only.
  virtual std::uint32_t forecast_layers() const { return 0; }
  // Whether forecasts wait until the experts in memory have answered, and are of the stream with
  // their answers: one layer ahead, and later by what these take.
  virtual bool forecasts_with_answers() const { return false; }

  // A pass begins: whose rows the next guesses are about.
  virtual void OnPassBegins(const PassFacts& /*pass*/) {}
  // A layer has chosen; layers come in the order in which tokens pass them.
  virtual void OnChosen(const LayerChoices& chosen) = 0;
  // What the layer's own gate said of the tokens that forecasts are made of, before Predict.
  virtual void OnGateScores(std::uint32_t /*layer*/, const GateScores& /*said*/) {}
  // The forecast as it guesses by it, corrected by what it has learned; good until the next call.
  virtual GateScores Corrected(std::uint32_t /*layer*/, std::uint32_t /*ahead*/,
                               const GateScores& forecast) {
    return forecast;
  }
  // Guesses for `layer`, after the one that lies `ahead` layers before it has chosen: best first,
  // each expert once.
  virtual std::vector<Guess> Predict(std::uint32_t layer, std::uint32_t ahead,
                                     const GateScores& forecast) = 0;

  // Likely experts that it did not guess, as others may answer for them; counted once a guess.
  virtual std::uint64_t left_out() const { return 0; }
};

struct LearnedForecast;
struct SeenPaths;

enum class ForecastRows {
  kLogits,  // of a softmax router: scores are their exponentials, up to a factor
  kScores,
};

// What some predictors begin with.
struct PredictorMaterial {
  std::span<const LearnedForecast> learned = {};
  std::span<const SeenPaths> paths = {};
  ForecastRows rows = ForecastRows::kLogits;
  // Experts whose scores are within this share of the boundary, infinity for any, may be replaced
  // or left out, in passes of at most `most_tokens`.
  double alpha = 0;
  std::uint32_t most_tokens = 1;
};

// "lookahead", "top-score", "smoe", "gate", "eap", "previous", "wrong"; "auto" is lookahead, or
// top-score where alpha says that experts are replaced; "none" gives null. `experts_per_token` is
// of a layer.
Result<std::unique_ptr<Predictor>> MakePredictor(std::string_view name, ExpertGrid grid,
                                                 std::uint32_t experts_per_token,
                                                 const PredictorMaterial& material = {});
std::vector<std::string> PredictorNames();
// Memory that its tables take. What it keeps of single sequences is a few words an expert.
Bytes PredictorBytes(std::string_view name, ExpertGrid grid);

}  // namespace troupe
