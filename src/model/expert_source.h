// Where the expert block gets its experts from: a layer asks for those that its tokens chose and
// takes them as they become ready, in any order. Whether they lie in memory for good
// (resident_experts.h) or come from a slow tier is the source's business.
#pragma once

#include <cstdint>
#include <span>

#include "base/expert_choice.h"
#include "base/status.h"
#include "expert/flow/expert_usage.h"
#include "expert/forecast/predictor.h"
#include "expert/pass_facts.h"
#include "model/weights.h"

namespace troupe {

struct ReadyExpert {
  std::uint32_t expert = 0;
  Mlp weights;
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

  // A layer needs these experts, each named once; whatever an earlier call asked for is forgotten.
  virtual void Ask(std::uint32_t layer, std::span<const ExpertDemand> demands) = 0;

  // Number of layers ahead whose gates it wants to hear in this pass.
  virtual std::uint32_t forecast_layers() const { return 0; }
  // What this layer's gate and those of the next layers say of the stream as it is now: first this
  // layer's own, then of each layer that has experts from the next one on; empty if
  // forecast_layers() is 0. After Ask; the spans are valid during the calls.
  virtual void OnGateScores(std::uint32_t /*layer*/, const GateScores& /*said*/) {}
  virtual void OnForecast(std::uint32_t /*layer*/, std::uint32_t /*ahead*/,
                          const GateScores& /*forecast*/) {}

  // Some of the experts asked for that were not given yet, good until the next call of the source.
  // Without `wait` there may be none; with it there is at least one. Fails if one of them cannot be
  // had; what was asked for is then forgotten.
  virtual Result<std::span<const ReadyExpert>> Take(bool wait) = 0;

  // Lets reads under way go on, without waiting; called between the regions of a pass. What was
  // taken stays good.
  virtual void Advance() {}

  virtual ExpertUsage usage() const = 0;
  // The request's part of it, without `layers`: the parts of all requests add up to the whole. A
  // source that has every expert in memory counts nothing by request.
  virtual ExpertUsage UsageOf(RequestId /*request*/) { return {}; }
  // Once its usage is not asked for any more.
  virtual void ForgetRequest(RequestId /*request*/) {}
};

}  // namespace troupe
