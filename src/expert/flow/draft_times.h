// How long a draft model takes: for a token that it guesses, and to catch up with a text that it
// has not read. Measured as it goes. Pure: time comes in as an argument.
#pragma once

#include <cstddef>

#include "expert/flow/draft_governor.h"
#include "expert/flow/row_speed.h"

namespace troupe {

class DraftTimes {
 public:
  void NoteDraft(std::size_t tokens, double seconds);
  void NoteRead(std::size_t tokens, double seconds);

  // Of a draft for a text that may have so many tokens more. `behind`: tokens that are to be read
  // before the draft begins. What was not measured yet costs nothing.
  DraftCost Cost(std::size_t behind, std::size_t text_left) const;

 private:
  double token_ = 0;
  RowCurve reading_;
};

}  // namespace troupe
