// Where the expert block gets its experts from: a layer asks for those that its tokens chose and
// takes them as they become ready, in any order. The source decides whether they
// lie in memory for good (resident_experts.h) or come from a slow tier.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include "base/expert_choice.h"
#include "base/status.h"
#include "expert/flow/expert_usage.h"
#include "expert/forecast/predictor.h"
#include "expert/pass_facts.h"
#include "model/weights.h"
#include "quant/activations.h"

namespace troupe {

// What a layer of a pass wants computed: its experts, and for each the rows that chose it. Good
// until the last of the experts was taken.
struct ExpertBatch {
  std::uint32_t layer = 0;
  std::span<const ExpertDemand> demands = {};  // each expert once
  // The rows as the experts read them: floats, and their 8-bit form where the width has one.
  Activations input = {};
  // Rows of the input, expert by expert, and where those of each expert of the layer begin, with
  // the end behind the last.
  std::span<const std::uint32_t> rows = {};
  std::span<const std::uint32_t> first_row = {};

  std::span<const std::uint32_t> RowsOf(std::uint32_t expert) const {
    return rows.subspan(first_row[expert], first_row[expert + 1] - first_row[expert]);
  }
};

// An expert's answers, computed elsewhere: one for each of ExpertBatch::RowsOf(expert), in that
// order, as long as the model is wide. They are what ExpertMlp gives, to the byte.
struct ReadyRows {
  std::span<const float> values;
};

struct ReadyExpert {
  std::uint32_t expert = 0;
  std::variant<Mlp, ReadyRows> answer;  // weights to compute with, or what they would give
};

// An expert on its way of which gate and up have come.
struct BegunExpert {
  std::uint32_t expert = 0;
  Mlp weights;  // down is not to be read
};

class ExpertSource {
 public:
  virtual ~ExpertSource() = default;

  // A pass begins. What is said until the next one is about it.
  virtual void OnPassBegins(const PassFacts& /*pass*/) {}

  // What a layer's router said: a row of all experts' scores for each row of the pass, and the
  // choice, the same number of slots a row, best first. Before the layer asks. A source that need
  // not be exact may answer some slots of rows that need not be exact otherwise: by another expert
  // of the layer, at another weight, or by kNoExpert.
  virtual void OnRouted(std::uint32_t /*layer*/, std::span<const float> /*scores*/,
                        std::span<ExpertChoice> /*chosen*/) {}

  // The guesses of the last pass were checked: of each group n, from the first on, are of the
  // text. Before the next pass, if any group had some; otherwise none of them was.
  virtual void OnGuessesChecked(std::span<const std::uint32_t> /*right*/) {}

  // A layer needs these experts; whatever an earlier call asked for is forgotten.
  virtual void Ask(const ExpertBatch& batch) = 0;

  // Number of layers ahead whose gates it wants to hear in this pass.
  virtual std::uint32_t forecast_layers() const { return 0; }
  // Whether it wants to hear the next layer's gate alone, and later: once the experts that Take
  // gives first are computed, of the stream with their answers.
  virtual bool forecasts_with_answers() const { return false; }
  // What this layer's gate and those of the next layers say of the stream as it is now: first this
  // layer's own, then of each layer that has experts from the next one on; empty if
  // forecast_layers() is 0. After Ask; the spans are valid during the calls.
  virtual void OnGateScores(std::uint32_t /*layer*/, const GateScores& /*said*/) {}
  virtual void OnForecast(std::uint32_t /*layer*/, std::uint32_t /*ahead*/,
                          const GateScores& /*forecast*/) {}

  // Some of the experts asked for that were not given yet, good until the next call of the source.
  // Without `wait` there may be none; with it there is at least one, unless others than the pass
  // hold all the room that the source has: then ask again. Fails if one of them cannot be had; what
  // was asked for is then forgotten.
  virtual Result<std::span<const ReadyExpert>> Take(bool wait) = 0;

  // Where Take would wait: waits until gate and up of an expert that was asked for have come, and
  // gives it, each once. None where there is none to wait for, or Take waits no longer. What was
  // taken before is not good any more, and these weights are until the next Take. Nobody has
  // compared all of their bytes: what is computed with them counts only if Take gives weights of
  // that expert.
  virtual std::optional<BegunExpert> TakeBegun() { return std::nullopt; }

  // Lets reads under way go on, without waiting; called between the regions of a pass. What was
  // taken stays good.
  virtual void Advance() {}

  virtual ExpertUsage usage() const = 0;
  // Divides what the pass has spent among its requests: once a pass, before parts are taken.
  virtual void SettleUsage() {}
  // The part of usage() that was divided to the request since it was last taken, without `layers`.
  // The parts of all requests add up to the whole.
  virtual ExpertUsage TakeUsage(RequestId /*request*/) { return {}; }
  // The same with what its last pass has spent, even if it failed. Nothing is counted for the
  // request afterwards.
  virtual ExpertUsage EndRequest(RequestId /*request*/) { return {}; }
};

}  // namespace troupe
