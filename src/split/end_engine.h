// This machine's engine as an end sees it that weighs places: what runs there, what an answer would
// take, what it has kept of texts, and measurements of it while it has nothing else to do
// (self_measure.h). On the loop's thread.
#pragma once

#include <troupe/model.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "runtime/batch_loop.h"
#include "split/flow/known_prefixes.h"
#include "split/flow/place_costs.h"
#include "split/flow/place_rule.h"
#include "split/flow/side.h"
#include "split/own_source.h"
#include "split/self_measure.h"

namespace troupe {

class EndEngine {
 public:
  // As of OwnSource. `exact`: all its answers are, though the model was opened to lose quality.
  EndEngine(Model& model, const Clock& clock, PostToLoop post, bool exact);

  // What runs for answers; who begins one there calls Yield before.
  OwnSource& own() { return own_; }
  const OwnSource& own() const { return own_; }
  // For somebody: a measurement is no work.
  bool is_at_work() const { return own_.runs() > 0 && !measure_.is_under_way(); }
  // What is there now, as of the last pass.
  void Look();
  // A measurement leaves for somebody.
  void Yield();
  // For places to be compared. `has_others`: passes that are nobody's whole answer.
  void MeasureIfIdle(bool has_others);
  void Close() { measure_.Close(); }

  // Of an answer that reads so much. `power`: where it is short, a second counts for more.
  std::optional<PlaceCosts> Costs(std::size_t read, double power) const;
  // Of an answer there. read_seconds: a token of its prompt.
  UnderWay Of(const RunLeft& left, double read_seconds) const;
  // What the place is believed to have kept of texts; of the cloud that is `in_the_cloud`. Null: it
  // keeps nothing, or states, which are there for a few places in a text that nobody could tell.
  KnownPrefixes* KnownIn(Side place, KnownPrefixes& in_the_cloud);

 private:
  // Answers of the model that were not asked for by runs: those that see logits, and vectors.
  std::size_t Others() const;
  std::uint64_t Ended() const {
    return counters_.finished + counters_.cancelled + counters_.failed;
  }

  Model& model_;
  const Clock& clock_;
  const bool exact_;
  KnownPrefixes known_;
  OwnSource own_;
  SelfMeasure measure_;
  BatchCounters counters_;
  // A measurement was stopped when as many had ended: the engine has it until its pass is over.
  std::optional<std::uint64_t> leaves_after_;
};

}  // namespace troupe
