// Has an end's own engine measured while it has nothing else to do, by texts that nobody has said
// (own_costs.h), so that places can be compared though all answers go to the cloud: in the
// beginning, again after some minutes, and after a failure with a growing pause. Leaves at once for
// anybody who wants the engine, and pauses then as well, so that it does not try all the time where
// somebody always comes. Answers keep their bytes: a measurement is a request beside them.
// On the loop's thread.
#pragma once

#include <troupe/model.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "split/growing_pause.h"
#include "split/own_source.h"

namespace troupe {

class SelfMeasure {
 public:
  // What others on the machine do, how warm it is and which experts are in memory changes within
  // minutes. A machine that reads 50 tokens a second measures for one percent of that time.
  static constexpr Nanos kGoodFor = 600'000'000'000;

  // All must outlive it. `exact`: as its answers are.
  SelfMeasure(Model& model, const Clock& clock, OwnSource& own, bool exact);

  // The engine has nothing to do, often: begins where it is time. `is_known`: something was
  // measured, if only by answers.
  void OnIdle(bool is_known);
  // Somebody wants the engine: what was begun is begun anew some other time.
  void Yield();
  // For good.
  void Close() {
    is_closed_ = true;
    Yield();
  }

  // It has a run at its OwnSource now, and nobody else has one.
  bool is_under_way() const { return stop_ != nullptr; }

 private:
  void Next();
  void OnOver(const Status& status);
  // Passes are anybody's again.
  void Rest();

  Model& model_;
  const Clock& clock_;
  OwnSource& own_;
  const bool exact_;
  const std::vector<std::size_t> prompts_;
  std::size_t done_ = 0;  // of these
  // What is tried again within kGoodFor has the same texts: what the prefix cache has kept of them
  // was measured, and pushes nobody's prefixes out once more.
  std::uint64_t rounds_ = 0;       // of texts, so far
  Nanos round_at_ = 0;             // when the last one began
  TokenSource::Stop stop_;         // null: nothing is being measured
  std::optional<Nanos> known_at_;  // the last time; absent: never
  GrowingPause pause_;             // after failures, and for somebody
  bool is_closed_ = false;
};

}  // namespace troupe
