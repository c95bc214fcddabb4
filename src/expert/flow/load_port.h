// What misses are loaded through, as MissFlow sees it: an ExpertLoader behind the engine, a link on
// a virtual clock behind a replay, a script in tests. Ends of loads come back through
// MissFlow::OnLoadsEnded.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "expert/expert_copy.h"
#include "expert/expert_id.h"
#include "expert/flow/answer_costs.h"

namespace troupe {

// In the order in which they are read. What is foreseen is almost certain to be asked for, and is
// read like demand, but behind it; a prefetch is a guess, and keeps the medium free for both.
enum class Urgency { kDemand, kForeseen, kPrefetch };
inline constexpr std::size_t kUrgencies = 3;

// What became of a load that was called off: gone at once; ending with kCancelled as soon as what
// is under way has come; or too late, and it goes on.
enum class CallOff { kGone, kEnding, kTooLate };

struct LoadEnd {
  ExpertId id;
  Status status;
};

class LoadPort {
 public:
  virtual ~LoadPort() = default;

  // Begins to load an expert that is not being loaded into a slot that is its own until the end.
  virtual void Begin(ExpertId id, std::uint32_t slot, ExpertCopy copy, Urgency urgency) = 0;
  // A load under way has become demand; nothing happens if it is already.
  virtual void Promote(ExpertId id) = 0;
  // Of a load that is not demand.
  virtual CallOff Cancel(ExpertId id) = 0;
  // How long one expert of the layer takes the link; 0: not known.
  virtual double SecondsFor(std::uint32_t layer) const = 0;
  // What the layer's misses are planned by. What is queued holds the loads that its demand waits
  // for already.
  virtual AnswerCosts CostsFor(std::uint32_t layer) const = 0;
  // To come of a load under way.
  virtual Bytes BytesLeft(ExpertId id) const = 0;
  // That the rest of a load under way takes the link alone; 0: not known.
  virtual double SecondsLeft(ExpertId id) const = 0;
  // That a demand of the layer waits at most for a load ahead that is being read.
  virtual double SecondsHeld(std::uint32_t layer) const = 0;
  // Nothing is under way, so nothing will end.
  virtual bool idle() const = 0;
};

}  // namespace troupe
