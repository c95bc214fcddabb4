#include "split/draft_desk.h"

#include <random>
#include <utility>

namespace troupe {
namespace {

// Of drafts that are made whether they gain or not, to know what they are like or as it was told.
constexpr std::size_t kAheadAnyway = 8;

}  // namespace

DraftDesk::DraftDesk(const Clock& clock, TokenSource& guesser, CloudSource& cloud,
                     const Options& options)
    : clock_(clock), guesser_(guesser), cloud_(cloud), options_(options) {
  constexpr int kHalf = 32;
  std::random_device draw;
  last_name_ = (std::uint64_t{draw()} << kHalf) | draw();
}

DraftPlan DraftDesk::Pace() const {
  DraftPlan plan = meter_.Plan(facts_.own_token_seconds, facts_.cloud_token_seconds,
                               facts_.round_trip_seconds, Now());
  if (plan.ahead == 0 && (options_.always || is_new())) plan.ahead = kAheadAnyway;
  return plan;
}

std::optional<PlaceCosts> DraftDesk::Costs(const std::optional<PlaceCosts>& cloud) const {
  if (!cloud || !facts_.cloud_checks) return std::nullopt;
  const DraftPlan plan =
      meter_.Plan(facts_.own_token_seconds, cloud->token_seconds, facts_.round_trip_seconds, Now());
  if (plan.ahead == 0) return std::nullopt;
  PlaceCosts costs = *cloud;
  costs.token_seconds = plan.token_seconds;
  return costs;
}

std::optional<std::uint64_t> DraftDesk::NewName() {
  if (!facts_.cloud_checks) return std::nullopt;
  return ++last_name_;
}

std::shared_ptr<AnswerDraft> DraftDesk::Draft(Request rest, std::uint64_t name,
                                              const DraftVerdict& told) {
  std::erase_if(drafts_, [](const auto& draft) { return draft.expired(); });
  if (drafts_.size() >= options_.most) return nullptr;
  auto draft = std::make_shared<AnswerDraft>(*this, std::move(rest), name, told);
  drafts_.push_back(draft);
  ++begun_;
  return draft;
}

void DraftDesk::OnDrafted(const DraftedAnswer& drafted) {
  if (!meter_.OnAnswer(drafted, Now())) return;
  ++counts_.learned;
  counts_.expected_seconds += drafted.expected_seconds;
  counts_.seconds += drafted.seconds;
}

}  // namespace troupe
