// Who is before an answer of an end in its cloud, and for how long: what a cloud tells of its load,
// and of the wait of an answer that is there already. By the counters of its engine and by the
// turns of ends, without asking either.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/batch_loop.h"
#include "server/end_turns.h"
#include "split/wire/cloud_load.h"

namespace troupe {

// Seconds. Who waits for less is not told of it: its first line would come as soon.
inline constexpr double kWaitWorthTelling = 0.02;

// What is before a new answer of an end. `ahead`: of ends, for which the engine was not asked yet;
// `cut_prompts`: that are computed beside the engine's own.
CloudLoad LoadToTell(const BatchCounters& now, const EndTurns::Ahead& ahead,
                     std::size_t cut_prompts, std::uint32_t sequences);

// How long an answer waits until it is read. Before it has its turn: for those before it now. From
// then on for what was with the engine, as that ends and is read. Any thread.
class PlaceInLine {
 public:
  // Once, before the engine is asked.
  void HasTurn(const BatchCounters& now);
  bool has_turn() const { return has_turn_; }
  // `ahead`: of this answer, and not looked at once it has its turn.
  double WaitSeconds(const BatchCounters& now, const EndTurns::Ahead& ahead,
                     std::uint32_t sequences) const;

 private:
  std::atomic<bool> has_turn_ = false;  // those below are of then
  std::size_t answers_ = 0, tokens_ = 0;
  std::size_t ended_before_ = 0, read_before_ = 0;
};

}  // namespace troupe
