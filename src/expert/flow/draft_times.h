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

  // What a draft costs. `behind`: tokens the model must read before it can guess. `text_left`: how
  // many more tokens the answer may have. What has not been measured yet costs nothing.
  DraftCost Cost(std::size_t behind, std::size_t text_left) const;

 private:
  double token_ = 0;
  RowCurve reading_;
};

}  // namespace troupe
