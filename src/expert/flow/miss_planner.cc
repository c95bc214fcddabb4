#include "expert/flow/miss_planner.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "base/check.h"

namespace troupe {
namespace {

bool Stands(MissAnswer answer) {
  return answer == MissAnswer::kWait || answer == MissAnswer::kLoad;
}

// Plans with some answers lost, for each number of lost ones: more misses are cut in steps.
constexpr std::size_t kMostLosses = 16;

std::size_t StepFor(std::size_t count, std::size_t most) {
  return std::max<std::size_t>(1, (count + most - 1) / most);
}

}  // namespace

void MissPlanner::ListItems(const LayerMisses& layer) {
  items_.clear();
  options_.clear();
  for (const Miss& miss : layer.misses) items_.push_back({.miss = &miss});
  const bool by_rows = layer.order == MissOrder::kRows;
  std::ranges::sort(items_, [by_rows](const Item& left, const Item& right) {
    const Miss &a = *left.miss, &b = *right.miss;
    if (a.loading.has_value() != b.loading.has_value()) return a.loading.has_value();
    if (by_rows && a.rows != b.rows) return a.rows > b.rows;
    if (a.weight != b.weight) return a.weight > b.weight;
    return a.expert < b.expert;
  });
  for (Item& item : items_) ListOptions(layer, item);
}

void MissPlanner::ListOptions(const LayerMisses& layer, Item& item) {
  const Miss& miss = *item.miss;
  item.begin = static_cast<std::uint32_t>(options_.size());
  item.can_stand = miss.loading || miss.full > Bytes();
  if (item.can_stand) {
    options_.push_back({.answer = miss.loading ? MissAnswer::kWait : MissAnswer::kLoad});
  }
  if (!item.can_stand || layer.medium.measured()) {
    const auto allowed = [&](const std::optional<double>& price) {
      return !layer.loss.exact() && price && *price <= layer.loss.row_price;
    };
    const bool low = !miss.loading && miss.low > Bytes();
    if (low && allowed(miss.low_price)) options_.push_back({.answer = MissAnswer::kLoadLow});
    bool known = false;
    for (const std::uint32_t place : miss.places) known |= layer.places[place].measured();
    for (const std::uint32_t place : miss.places) {
      if (layer.places[place].measured() || (!item.can_stand && !known)) {
        options_.push_back({.answer = MissAnswer::kElsewhere, .place = place});
      }
    }
    if (allowed(miss.substitute_price)) options_.push_back({.answer = MissAnswer::kSubstitute});
    if (allowed(miss.drop_price)) options_.push_back({.answer = MissAnswer::kDrop});
  }
  item.end = static_cast<std::uint32_t>(options_.size());
  TROUPE_CHECK(item.end > item.begin);  // every expert is somewhere
}

MissPlanner::Score MissPlanner::Evaluate(MissTimeline& timeline, const Assignment& answers) const {
  MissTimeline::Moment moment = timeline.Begin();
  Score score;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    timeline.Add(*items_[i].miss, answers[i], moment);
    score.moved += Stands(answers[i].answer) ? 0 : 1;
  }
  score.cost = timeline.Cost(moment);
  return score;
}

void MissPlanner::TakeIfBetter(MissTimeline& timeline, const Assignment& answers) {
  const Score score = Evaluate(timeline, answers);
  if (!(score < best_score_)) return;
  best_score_ = score;
  best_ = answers;
}

// The place that is done with a miss first, which has it from now on. Says nothing of the medium.
std::optional<MissOption> MissPlanner::GiveAway(MissTimeline& timeline, const Item& item) const {
  std::optional<MissOption> soonest;
  for (std::uint32_t o = item.begin; o < item.end; ++o) {
    const MissOption& option = options_[o];
    if (option.answer != MissAnswer::kElsewhere) continue;
    if (!soonest ||
        timeline.EndAt(option.place, *item.miss) < timeline.EndAt(soonest->place, *item.miss)) {
      soonest = option;
    }
  }
  MissTimeline::Moment ignored;
  if (soonest) timeline.Add(*item.miss, *soonest, ignored);
  return soonest;
}

void MissPlanner::MakeStanding(MissTimeline& timeline) {
  timeline.Begin();
  standing_.clear();
  for (const Item& item : items_) {
    standing_.push_back(options_[item.begin]);
    if (!item.can_stand) standing_.back() = GiveAway(timeline, item).value_or(standing_.back());
  }
}

// Two pointers: the last ones go to other places, one more with each plan.
void MissPlanner::TryCuts(MissTimeline& timeline, const Assignment& base, std::size_t most_cuts) {
  trial_ = base;
  TakeIfBetter(timeline, trial_);
  MissTimeline::Moment ignored = timeline.Begin();
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (!items_[i].can_stand) timeline.Add(*items_[i].miss, base[i], ignored);
  }
  moves_.clear();
  for (std::size_t i = items_.size(); i-- > 0;) {
    if (!Stands(base[i].answer)) continue;
    if (const auto option = GiveAway(timeline, items_[i])) moves_.emplace_back(i, *option);
  }
  const std::size_t step = StepFor(moves_.size(), most_cuts);
  for (std::size_t m = 0; m < moves_.size(); ++m) {
    trial_[moves_[m].first] = moves_[m].second;
    if ((m + 1) % step == 0 || m + 1 == moves_.size()) TakeIfBetter(timeline, trial_);
  }
}

// The same with some answers lost: those that lose least, of any one kind or of all.
void MissPlanner::TryLosses(MissTimeline& timeline) {
  struct Loss {
    double price;
    std::size_t item;
    MissOption option;
  };
  using Kind = std::optional<MissAnswer>;
  for (const Kind kind : std::array<Kind, 4>{std::nullopt, MissAnswer::kLoadLow,
                                             MissAnswer::kSubstitute, MissAnswer::kDrop}) {
    std::vector<Loss> losses;
    for (std::size_t i = items_.size(); i-- > 0;) {
      std::optional<Loss> least;
      for (std::uint32_t o = items_[i].begin; o < items_[i].end; ++o) {
        const MissAnswer answer = options_[o].answer;
        if (!IsLossy(answer) || (kind && answer != *kind)) continue;
        const double price = PriceOf(*items_[i].miss, answer) * items_[i].miss->rows;
        if (!least || price < least->price) least = Loss{price, i, options_[o]};
      }
      if (least) losses.push_back(*least);
    }
    std::ranges::stable_sort(losses, {}, &Loss::price);
    base_ = standing_;
    const std::size_t step = StepFor(losses.size(), kMostLosses);
    for (std::size_t m = 0; m < losses.size(); ++m) {
      base_[losses[m].item] = losses[m].option;
      const bool stop = (m + 1) % step == 0 || m + 1 == losses.size();
      if (stop) TryCuts(timeline, base_, kMostLosses);
    }
  }
}

bool MissPlanner::FewPlans() const {
  std::uint64_t plans = 1;
  for (const Item& item : items_) {
    plans *= item.end - item.begin;
    if (plans > kMostPlans) return false;
  }
  return plans > 1;
}

void MissPlanner::TryAll(MissTimeline& timeline, std::size_t at, const MissTimeline::Moment& moment,
                         std::uint32_t moved) {
  // Nothing that is added makes it better.
  const Score score{.cost = timeline.Cost(moment), .moved = moved};
  if (!(score < best_score_)) return;
  if (at == items_.size()) {
    best_score_ = score;
    best_ = trial_;
    return;
  }
  for (std::uint32_t o = items_[at].begin; o < items_[at].end; ++o) {
    const MissOption& option = trial_[at] = options_[o];
    const bool goes = option.answer == MissAnswer::kElsewhere;
    const double before = goes ? timeline.place_work(option.place) : 0;
    MissTimeline::Moment next = moment;
    timeline.Add(*items_[at].miss, option, next);
    TryAll(timeline, at + 1, next, moved + (Stands(option.answer) ? 0 : 1));
    if (goes) timeline.set_place_work(option.place, before);
  }
}

MissReason MissPlanner::WhyOf(const LayerMisses& layer, const Item& item,
                              const MissOption& option) const {
  if (option.answer == MissAnswer::kWait) return MissReason::kUnderWay;
  if (item.end - item.begin == 1) {
    return layer.medium.measured() || !item.can_stand ? MissReason::kOnlyAnswer
                                                      : MissReason::kNotMeasured;
  }
  return Stands(option.answer) || !item.can_stand ? MissReason::kNoBetter : MissReason::kBetter;
}

void MissPlanner::Conclude(const LayerMisses& layer, MissTimeline& timeline) {
  MissTimeline::Moment moment = timeline.Begin();
  plan_.decisions.clear();
  for (std::size_t i = 0; i < items_.size(); ++i) {
    const MissOption& option = best_[i];
    plan_.decisions.push_back({.expert = items_[i].miss->expert,
                               .answer = option.answer,
                               .place = option.place,
                               .seconds = timeline.Add(*items_[i].miss, option, moment),
                               .why = WhyOf(layer, items_[i], option)});
  }
  plan_.seconds = moment.Seconds();
  plan_.price = moment.price;
}

const MissPlan& MissPlanner::Plan(const LayerMisses& layer) {
  ListItems(layer);
  MissTimeline timeline(layer);
  MakeStanding(timeline);
  best_ = standing_;
  Conclude(layer, timeline);
  plan_.all_loaded_seconds = plan_.seconds;
  if (options_.size() == items_.size()) return plan_;

  best_score_ = {};
  TryCuts(timeline, standing_, /*most_cuts=*/items_.size());
  TryLosses(timeline);
  if (FewPlans()) TryAll(timeline, 0, timeline.Begin(), 0);
  Conclude(layer, timeline);
  return plan_;
}

}  // namespace troupe
