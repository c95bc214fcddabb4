#include "expert/flow/miss_answers.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace troupe {
namespace {

// Whoever allowed low copies has paid their price: what is left to decide is whether one is sooner.
constexpr double kAllowedPrice = 1;

}  // namespace

std::span<const std::uint32_t> MissAnswers::PlacesOf(std::uint32_t expert,
                                                     const AnswerCosts& costs) const {
  return costs.holders.empty() ? std::span(every_place_) : costs.holders[expert];
}

Miss MissAnswers::FactsOf(const WaitingMiss& miss, const AnswerCosts& costs) const {
  Miss facts{.expert = miss.event.id.expert,
             .rows = miss.event.tokens,
             .weight = miss.weight,
             .full = costs.full};
  if (miss.event.joined) {
    // It has to be waited for, though its last byte may have come.
    facts.full = std::max(miss.left, Bytes(1));
    if (!rules_.repeatable) {
      facts.loading = miss.left;
      facts.places = PlacesOf(facts.expert, costs);
    }
    return facts;
  }
  facts.places = PlacesOf(facts.expert, costs);
  if (miss.least != ExpertCopy::kLow) return facts;
  if (low_as_asked_) {
    facts.full = costs.low;
  } else {
    facts.low = costs.low;
    facts.low_price = kAllowedPrice;
  }
  return facts;
}

void MissAnswers::Decide(OpenDemand& demand, AnswerCosts costs) {
  if (demand.waiting.empty()) return;
  low_as_asked_ = rules_.repeatable || !costs.medium.measured();
  every_place_.clear();
  for (std::uint32_t p = 0; p < costs.places.size(); ++p) every_place_.push_back(p);
  misses_.clear();
  for (const WaitingMiss& miss : demand.waiting) {
    misses_.push_back(FactsOf(miss, costs));
    // What is ahead of the layer's loads includes those that the planner is told of by themselves.
    if (miss.event.joined) costs.medium.queued -= std::min(costs.medium.queued, miss.left);
  }
  Obey(demand,
       planner_.Plan({.misses = misses_,
                      .places = costs.places,
                      .medium = costs.medium,
                      .local = costs.local,
                      .loss = {.row_price = kAllowedPrice, .seconds_per_price = 0},
                      .order = rules_.order}),
       costs.medium);
}

void MissAnswers::Obey(OpenDemand& demand, const MissPlan& plan, const MediumState& medium) {
  const auto load_seconds = [&medium](Bytes bytes) {
    if (!medium.measured()) return 0.0;
    return medium.latency_seconds + AsDouble(medium.queued + bytes) / medium.bytes_per_second;
  };
  demand.planned = {.misses = static_cast<std::uint32_t>(misses_.size()),
                    .had_choice = std::ranges::any_of(
                        misses_, [](const Miss& miss) { return !miss.places.empty(); }),
                    .seconds = plan.seconds,
                    .all_local_seconds = plan.all_loaded_seconds};
  sorted_.clear();
  for (const MissDecision& decision : plan.decisions) {
    const auto found =
        std::ranges::find(demand.waiting, decision.expert,
                          [](const WaitingMiss& waiting) { return waiting.event.id.expert; });
    WaitingMiss& miss = *found;
    miss.event.expected_seconds = decision.seconds;
    miss.event.why = decision.why;
    miss.event.answer = decision.answer;
    if (miss.event.joined && decision.answer == MissAnswer::kLoad) {
      miss.event.answer = MissAnswer::kWait;
    } else if (decision.answer == MissAnswer::kLoad) {
      miss.load = low_as_asked_ ? miss.least : ExpertCopy::kFull;
      if (miss.load == ExpertCopy::kLow) miss.event.answer = MissAnswer::kLoadLow;
    }
    Count(miss.event.answer);
    if (miss.event.answer == MissAnswer::kElsewhere) {
      const Miss& facts = misses_[static_cast<std::size_t>(found - demand.waiting.begin())];
      ++demand.planned.elsewhere;
      demand.elsewhere.push_back({.expert = decision.expert,
                                  .place = decision.place,
                                  .load_seconds = load_seconds(facts.full)});
      demand.sent.push_back(std::move(miss));
      continue;
    }
    sorted_.push_back(std::move(miss));
  }
  std::swap(demand.waiting, sorted_);
  for (const WaitingMiss& miss : demand.waiting) {
    if (!miss.event.joined) demand.unplaced.push_back(miss.event.id);
  }
}

void MissAnswers::TakeBack(OpenDemand& demand, std::uint32_t expert) {
  const auto found = std::ranges::find(demand.elsewhere, expert, &AnsweredElsewhere::expert);
  TROUPE_CHECK(found != demand.elsewhere.end());
  const auto sent = demand.sent.begin() + (found - demand.elsewhere.begin());
  sent->event.answer = MissAnswer::kLoad;
  sent->load = sent->least;
  Uncount(MissAnswer::kElsewhere);
  Count(sent->event.answer);
  demand.unplaced.push_back(sent->event.id);
  demand.waiting.push_back(std::move(*sent));
  demand.sent.erase(sent);
  demand.elsewhere.erase(found);
}

void MissAnswers::GiveAway(OpenDemand& demand, std::uint32_t expert) {
  const ExpertId id{demand.layer, expert};
  const std::size_t at = demand.Find(id);
  TROUPE_CHECK(at < demand.waiting.size());
  WaitingMiss miss = std::move(demand.waiting[at]);
  demand.waiting.erase(demand.waiting.begin() + static_cast<std::ptrdiff_t>(at));
  std::erase(demand.unplaced, id);
  Uncount(miss.event.answer);
  miss.event.answer = MissAnswer::kElsewhere;
  Count(miss.event.answer);
  demand.elsewhere.push_back({.expert = expert});
  demand.sent.push_back(std::move(miss));
}

void MissAnswers::Uncount(MissAnswer answer) {
  switch (answer) {
    case MissAnswer::kWait:
      --decided_.waited;
      return;
    case MissAnswer::kLoad:
      --decided_.loaded;
      return;
    case MissAnswer::kLoadLow:
      --decided_.loaded_low;
      return;
    case MissAnswer::kElsewhere:
      --decided_.elsewhere;
      return;
    case MissAnswer::kSubstitute:
    case MissAnswer::kDrop:
      break;
  }
  TROUPE_CHECK(false);
}

void MissAnswers::Count(MissAnswer answer) {
  switch (answer) {
    case MissAnswer::kWait:
      ++decided_.waited;
      return;
    case MissAnswer::kLoad:
      ++decided_.loaded;
      return;
    case MissAnswer::kLoadLow:
      ++decided_.loaded_low;
      return;
    case MissAnswer::kElsewhere:
      ++decided_.elsewhere;
      return;
    case MissAnswer::kSubstitute:
    case MissAnswer::kDrop:
      break;  // said before a layer asks (substituted_routing.h)
  }
  TROUPE_CHECK(false);
}

}  // namespace troupe
