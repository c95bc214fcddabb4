#include "split/end_state.h"

namespace troupe {

void CountPredicted(const Predicted& predicted, EndState& state) {
  PredictedSums& sums = predicted.cut ? state.predicted_cuts
                        : predicted.drafts
                            ? state.predicted_drafts
                            : state.predicted[static_cast<std::size_t>(predicted.place)];
  ++sums.answers;
  sums.expected_seconds += predicted.expected_seconds;
  sums.seconds += predicted.seconds;
}

}  // namespace troupe
