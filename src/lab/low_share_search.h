// How large a share of a prompt's work may be answered by low copies: the largest one found whose
// perplexity is within a given loss of exact. Knows nothing of models; measuring a share is the
// caller's.
#pragma once

#include <functional>
#include <vector>

#include "base/status.h"

namespace troupe {

struct ShareTrial {
  double share = 0;
  double perplexity = 0;
  double loss = 0;  // of perplexity against share 0: 0.01 is one percent more
};

struct ShareSearch {
  std::vector<ShareTrial> trials;  // in the order in which they were made, share 0 first
  ShareTrial best;                 // one of them: what is promised was measured
};

// Halves the range `steps` times; so it takes at most steps + 2 measurements and ends within
// 2^-steps of where the loss crosses `most_loss`, if it rises with the share.
Result<ShareSearch> FindLowShare(const std::function<Result<double>(double share)>& perplexity,
                                 double most_loss, int steps);

}  // namespace troupe
