// Where the expert block gets its experts from: a layer asks for those that its tokens chose and
// takes them as they become ready, in any order. Whether they lie in memory for good
// (resident_experts.h) or come from a slow tier is the source's business.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/status.h"
#include "expert/cache/expert_cache.h"
#include "expert/forecast/predictor.h"
#include "expert/pass_facts.h"
#include "kernels/top_experts.h"
#include "model/weights.h"

namespace troupe {

// In a choice: nothing answers the slot.
inline constexpr std::uint32_t kNoExpert = std::numeric_limits<std::uint32_t>::max();

struct ReadyExpert {
  std::uint32_t expert = 0;
  Mlp weights;
};

// Sums since the source was made. An ask is one layer needing one expert for some tokens.
struct ExpertUsage {
  std::uint64_t hits = 0;    // asks that found the expert in memory
  std::uint64_t misses = 0;  // asks that did not
  // The tokens of these asks: (token, expert) pairs, of which one ask of a batch can hold many.
  std::uint64_t use_hits = 0;
  std::uint64_t use_misses = 0;
  std::uint64_t reads = 0;  // handed to the system
  std::uint64_t bytes_read = 0;
  // With at least one read under way; one that has ended counts until the loop comes by.
  double reading_seconds = 0;
  double stall_seconds = 0;  // in which there was nothing to compute before a load ended
  // Asks that a copy of lower precision answered, and the (token, expert) pairs among them: not
  // exact, and none unless somebody allowed it.
  std::uint64_t low_copies = 0;
  std::uint64_t low_assignments = 0;
  // Slots of tokens that another expert answered, or none: as little exact as low copies.
  std::uint64_t substituted = 0;
  std::uint64_t dropped = 0;
  double deciding_seconds = 0;  // which of them, and which experts leave the cache
  // Loads begun ahead of a question, and what became of them: there when asked for, asked for while
  // on their way, called off before all was read, evicted or failed unasked; or still waiting to be
  // asked for, of which there may be fewer in the end than in the beginning.
  std::uint64_t prefetches = 0;
  std::uint64_t prefetch_useful = 0;
  std::uint64_t prefetch_late = 0;
  std::uint64_t prefetch_cancelled = 0;
  std::uint64_t prefetch_wasted = 0;
  std::int64_t prefetch_waiting = 0;
  // Asks of layers that a guess was made for, and those of them that it held; some of these as what
  // would be chosen if the guess were right, not only as likely further ones.
  std::uint64_t asks_after_guess = 0;
  std::uint64_t guessed = 0;
  std::uint64_t expected = 0;
  // Experts left out of guesses as others may answer for them: in every guess that might have held
  // them, of which a layer may have several.
  std::uint64_t left_out = 0;

  double HitRate() const {
    const std::uint64_t asks = hits + misses;
    return asks == 0 ? 1.0 : static_cast<double>(hits) / static_cast<double>(asks);
  }
  std::vector<LayerHits> layers = {};  // of hits and misses together; empty if all are in memory

  // Slots that were not answered by the expert that the router chose, at its full precision.
  std::uint64_t NotExact() const { return substituted + dropped + low_assignments; }
  ExpertUsage Since(const ExpertUsage& before) const;
  ExpertUsage& operator+=(const ExpertUsage& part);  // of the same source
};

class ExpertSource {
 public:
  virtual ~ExpertSource() = default;

  // A pass begins. What is said until the next one is about it.
  virtual void PassBegins(const PassFacts& /*pass*/) {}

  // What a layer's router said: a row of all experts' scores for each row of the pass, and the
  // choice, the same number of slots a row, best first. Before the layer asks. A source that need
  // not be exact may answer some slots of rows that need not be exact otherwise: by another expert
  // of the layer, at another weight, or by kNoExpert.
  virtual void Routed(std::uint32_t /*layer*/, std::span<const float> /*scores*/,
                      std::span<ExpertChoice> /*chosen*/) {}

  // A layer needs these experts, each named once; whatever an earlier call asked for is forgotten.
  virtual void Ask(std::uint32_t layer, std::span<const ExpertDemand> demands) = 0;

  // Number of layers ahead whose gates it wants to hear in this pass.
  virtual std::uint32_t forecast_layers() const { return 0; }
  // What this layer's gate and those of the next layers say of the stream as it is now: first this
  // layer's own, then of each layer that has experts from the next one on; empty if
  // forecast_layers() is 0. After Ask; the spans are valid during the calls.
  virtual void GateSaid(std::uint32_t /*layer*/, const GateScores& /*said*/) {}
  virtual void Foretell(std::uint32_t /*layer*/, std::uint32_t /*ahead*/,
                        const GateScores& /*forecast*/) {}

  // Some of the experts asked for that were not given yet, good until the next call of the source.
  // Without `wait` there may be none; with it there is at least one. Fails if one of them cannot be
  // had; what was asked for is then forgotten.
  virtual Result<std::span<const ReadyExpert>> Take(bool wait) = 0;

  // Lets reads under way go on, without waiting; called between the regions of a pass. What was
  // taken stays good.
  virtual void Advance() {}

  virtual ExpertUsage usage() const = 0;
};

}  // namespace troupe
