#include "lab/low_share_search.h"

namespace troupe {

Result<ShareSearch> FindLowShare(const std::function<Result<double>(double share)>& perplexity,
                                 double most_loss, int steps) {
  ShareSearch search;
  const auto is_good = [&](double share) -> Result<bool> {
    TROUPE_ASSIGN_OR_RETURN(const double found, perplexity(share));
    const double exact = search.trials.empty() ? found : search.trials.front().perplexity;
    search.trials.push_back({.share = share, .perplexity = found, .loss = found / exact - 1});
    const ShareTrial& trial = search.trials.back();
    const bool good = trial.loss <= most_loss;
    if (good && share >= search.best.share) search.best = trial;
    return good;
  };
  TROUPE_RETURN_IF_ERROR(is_good(0).status());
  TROUPE_ASSIGN_OR_RETURN(const bool all, is_good(1));
  double good = 0, bad = 1;
  for (int step = 0; !all && step < steps; ++step) {
    const double middle = (good + bad) / 2;
    TROUPE_ASSIGN_OR_RETURN(const bool is_within, is_good(middle));
    (is_within ? good : bad) = middle;
  }
  return search;
}

}  // namespace troupe
