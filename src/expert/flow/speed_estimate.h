// How fast a model should run under a memory plan, before it has run: the cost model's seconds for
// what one pass through the layers reads and computes. Pure arithmetic.
//
// What is assumed:
//   - every expert is chosen as often as any other, so that a cache holds what a token asks for
//   with
//     probability slots / experts; real routing repeats itself and hits more often;
//   - loads of a layer overlap with that layer's experts, but for the last one to arrive, and with
//     nothing else: no layer's experts are asked for before the layer is reached;
//   - weights outside of experts cost as much a byte as those of an expert of `like`;
//   - attention over what the context holds, norms and sampling cost nothing: a context that is
//     nearly empty.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "expert/flow/cost_model.h"
#include "expert/flow/memory_plan.h"

namespace troupe {

// Layers whose experts are alike.
struct ExpertLayers {
  std::uint32_t layers = 0;
  std::string shape;  // a key of the cost model
  Bytes bytes;        // of one expert in memory
  LoadShape load;
};

struct ModelWork {
  Bytes dense;  // weights that every token uses, without the output matrix
  Bytes head;   // the output matrix: once a pass
  std::vector<ExpertLayers> experts;
  std::uint32_t experts_per_layer = 0;
  std::uint32_t experts_per_token = 0;  // of a layer
  std::string like;                     // the shape that stands for dense weights; may be empty
  Bytes like_bytes;
};

// One pass of some tokens through all layers.
struct PassEstimate {
  double compute_seconds = 0;
  double disk_seconds = 0;
  double wait_seconds = 0;  // of the disk's, those in which there is nothing to compute
  double bytes_read = 0;
  double experts_read = 0;

  double Seconds() const { return compute_seconds + wait_seconds; }
  PassEstimate& operator+=(const PassEstimate& other);
};

struct SpeedEstimate {
  double hit_rate = 1;  // assumed while decoding
  PassEstimate decode;  // of one token
  std::uint32_t prompt = 0;
  PassEstimate prefill;  // of the prompt, with a cache that is empty before

  double DecodeTokensPerSecond() const { return 1 / decode.Seconds(); }
  double PrefillTokensPerSecond() const { return prompt / prefill.Seconds(); }
  // If loads overlapped with nothing, and if they overlapped with everything.
  double SlowestDecode() const { return 1 / (decode.compute_seconds + decode.disk_seconds); }
  double FastestDecode() const;
};

// The share of asks that a cache of this plan answers if all experts are used equally often.
double UniformHitRate(const MemoryPlan& plan, const MemoryNeeds& needs);

// Fails if the model lacks a figure that is needed.
Result<PassEstimate> EstimatePass(const ModelWork& work, const CostModel& costs,
                                  std::uint32_t tokens, double hit_rate);

Result<SpeedEstimate> EstimateSpeed(const ModelWork& work, const MemoryPlan& plan,
                                    const MemoryNeeds& needs, const CostModel& costs,
                                    std::uint32_t prompt);

}  // namespace troupe
