// What answering an expert's rows takes the card and the processor, and what a copy into the card
// takes: running means of what was measured while answers were made, as each machine's card and
// link differ and change with what else runs. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "expert/flow/lane_balance.h"
#include "expert/flow/row_speed.h"

namespace troupe {

class CardSpeeds {
 public:
  // What `experts` took one after the other, with `rows` rows in all. The first measurement of the
  // card counts for nothing: drivers put off work until a kernel is first used.
  void NoteCard(std::uint32_t experts, std::uint32_t rows, double seconds);
  void NoteProcessor(std::uint32_t experts, std::uint32_t rows, double seconds);
  void NoteCopy(double seconds) { copy_.Add(seconds); }

  // Whether both were measured. What was not takes no time, so that it is tried.
  bool known() const { return card_.measured() && processor_.measured(); }
  double CardSeconds(std::uint32_t rows) const { return card_.At(rows); }
  double ProcessorSeconds(std::uint32_t rows) const { return processor_.At(rows); }
  std::optional<double> CopySeconds() const { return copy_.Mean(); }

 private:
  RowCurve card_, processor_;
  bool first_ = true;
  WindowMean copy_{16};
};

}  // namespace troupe
