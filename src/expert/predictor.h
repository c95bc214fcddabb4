// Guesses which experts a layer will choose before its tokens get there, so that their loads can
// begin early. A predictor sees what every layer chose and, if it asks for it, the scores that the
// next layer's gate gives to the present layer's gate input. A guess never changes an answer: it
// decides only when bytes are read. One file a predictor.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "expert/eviction_policy.h"
#include "expert/expert_id.h"

namespace troupe {

// What the next layer's gate says of the present layer's gate input.
struct GateForecast {
  std::uint32_t tokens = 0;
  std::span<const float> scores;          // a row of all experts a token; higher is likelier
  std::span<const std::uint32_t> chosen;  // top-k of each token
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
  virtual bool wants_forecast() const { return false; }

  // A layer has chosen; layers come in the order in which tokens pass them.
  virtual void Chose(std::uint32_t layer, std::span<const ExpertDemand> chosen) = 0;
  // Guesses for `layer`, after the layer before it has chosen: best first, each expert once.
  virtual std::vector<Guess> Predict(std::uint32_t layer, const GateForecast& forecast) = 0;
};

// "gate", "eap", "previous"; "none" gives null. `experts_per_token` is of a layer.
Result<std::unique_ptr<Predictor>> MakePredictor(std::string_view name, ExpertGrid grid,
                                                 std::uint32_t experts_per_token);
std::vector<std::string> PredictorNames();
// Memory that its tables take.
Bytes PredictorBytes(std::string_view name, ExpertGrid grid);

}  // namespace troupe
