#include "expert/forecast/predictor.h"

#include "expert/forecast/activation_path.h"
#include "expert/forecast/cross_layer_gate.h"
#include "expert/forecast/lookahead_gate.h"
#include "expert/forecast/previous_token.h"
#include "expert/forecast/smoe_gate.h"
#include "expert/forecast/top_score_gate.h"
#include "expert/forecast/wrong_gate.h"

namespace troupe {

std::vector<std::string> PredictorNames() {
  return {"none", "auto", "lookahead", "top-score", "smoe", "gate", "eap", "previous", "wrong"};
}

Bytes PredictorBytes(std::string_view name, ExpertGrid grid) {
  if (name == "auto" || name == "lookahead" || name == "top-score") {
    return LookaheadGate::BytesFor(grid);
  }
  return name == "eap" ? ActivationPath::BytesFor(grid) : Bytes();
}

Result<std::unique_ptr<Predictor>> MakePredictor(std::string_view name, ExpertGrid grid,
                                                 std::uint32_t experts_per_token,
                                                 const PredictorMaterial& material) {
  using Made = std::unique_ptr<Predictor>;
  if (name == "none") return Made();
  if (name == "auto") name = material.alpha > 0 ? "top-score" : "lookahead";
  if (name == "lookahead") {
    return Made(std::make_unique<LookaheadGate>(grid, experts_per_token, material.learned));
  }
  if (name == "top-score") {
    return Made(std::make_unique<TopScoreGate>(grid, experts_per_token, material));
  }
  if (name == "smoe") return Made(std::make_unique<SmoeGate>(experts_per_token, material));
  if (name == "gate") return Made(std::make_unique<CrossLayerGate>(experts_per_token));
  if (name == "eap") {
    return Made(std::make_unique<ActivationPath>(grid, experts_per_token, material.paths));
  }
  if (name == "previous") return Made(std::make_unique<PreviousToken>(grid));
  if (name == "wrong") return Made(std::make_unique<WrongGate>(experts_per_token));
  return InvalidArgument(
      "'{}' is no predictor, expected none, auto, lookahead, top-score, smoe, gate, eap, previous "
      "or wrong",
      name);
}

}  // namespace troupe
