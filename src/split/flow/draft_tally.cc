#include "split/flow/draft_tally.h"

namespace troupe {

void DraftTally::OnTold(const DraftPlan& plan, Nanos now) {
  const std::optional<Nanos> before = last_;
  last_ = now;
  if (!before || plan.in_time <= 0) return;
  ++sum_.tokens;
  sum_.seconds += static_cast<double>(now - *before) * 1e-9;
  sum_.expected_seconds += plan.token_seconds;
  sum_.cloud_seconds += plan.cloud_seconds;
  sum_.drafted_seconds += plan.drafted_seconds;
  sum_.in_time += plan.in_time;
}

void DraftTally::OnVerdict(std::optional<std::uint64_t> right) {
  --under_way_;
  if (!right) return;
  sum_.right = static_cast<double>(*right);
  told_tokens_ = static_cast<double>(sum_.tokens);
  told_in_time_ = sum_.in_time;
}

DraftedAnswer DraftTally::Sum() const {
  DraftedAnswer sum = sum_;
  sum.judged = static_cast<double>(sum.tokens);
  // A cloud that has said nothing of any offer has taken nothing, as far as anybody can say.
  if (under_way_ > 0 && told_tokens_ > 0) {
    sum.judged = told_tokens_;
    sum.in_time = told_in_time_;
  }
  return sum;
}

}  // namespace troupe
