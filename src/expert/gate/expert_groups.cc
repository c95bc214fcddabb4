#include "expert/gate/expert_groups.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"

namespace troupe {
namespace {

// An exchange has to bring more than this share of all pairs: a sum's rounding is no gain.
constexpr double kLeastGain = 1e-12;

// A division under way: which group each expert is in, and what it has in common with each group.
class Division {
 public:
  Division(std::uint32_t experts, std::uint32_t groups, const ChosenTogether& together)
      : experts_(experts), groups_(groups), group_of_(experts, groups) {
    for (std::uint32_t a = 0; a < experts; ++a) {
      for (std::uint32_t b = 0; b < experts; ++b) {
        pairs_.push_back(a == b ? 0 : together(a, b));
        all_ += pairs_.back();
      }
    }
    with_.resize(std::size_t{experts} * groups);
  }

  // Group after group: the free expert that meets the other free ones most, then whoever meets the
  // group most. Ties go to the lowest number.
  void FillGreedily() {
    for (std::uint32_t g = 0; g < groups_; ++g) {
      const std::uint32_t size = experts_ / groups_ + (g < experts_ % groups_ ? 1 : 0);
      for (std::uint32_t i = 0; i < size; ++i) Put(i == 0 ? MostMet() : Nearest(g), g);
    }
  }

  // It ends, as each exchange raises the pairs within groups by at least a fixed amount.
  void ExchangeWhilePaying() {
    while (const std::optional<Exchange> best = BestExchange()) {
      const std::uint32_t g = group_of_[best->a], h = group_of_[best->b];
      Put(best->a, h);
      Put(best->b, g);
    }
  }

  ExpertGroups Groups() const {
    ExpertGroups groups(groups_);
    for (std::uint32_t e = 0; e < experts_; ++e) groups[group_of_[e]].push_back(e);
    std::ranges::sort(groups);
    return groups;
  }

 private:
  struct Exchange {
    std::uint32_t a, b;
  };

  double Pair(std::uint32_t a, std::uint32_t b) const {
    return pairs_[std::size_t{a} * experts_ + b];
  }
  double With(std::uint32_t expert, std::uint32_t group) const {
    return with_[std::size_t{expert} * groups_ + group];
  }
  bool IsFree(std::uint32_t expert) const { return group_of_[expert] == groups_; }

  void Put(std::uint32_t expert, std::uint32_t group) {
    const std::uint32_t before = group_of_[expert];
    for (std::uint32_t e = 0; e < experts_; ++e) {
      double* const with = with_.data() + std::size_t{e} * groups_;
      if (before < groups_) with[before] -= Pair(e, expert);
      with[group] += Pair(e, expert);
    }
    group_of_[expert] = group;
  }

  std::uint32_t MostMet() const {
    std::optional<std::uint32_t> best;
    double most = 0;
    for (std::uint32_t a = 0; a < experts_; ++a) {
      if (!IsFree(a)) continue;
      double met = 0;
      for (std::uint32_t b = 0; b < experts_; ++b) met += IsFree(b) ? Pair(a, b) : 0;
      if (!best || met > most) best = a, most = met;
    }
    return *best;
  }

  std::uint32_t Nearest(std::uint32_t group) const {
    std::optional<std::uint32_t> best;
    for (std::uint32_t e = 0; e < experts_; ++e) {
      if (IsFree(e) && (!best || With(e, group) > With(*best, group))) best = e;
    }
    return *best;
  }

  std::optional<Exchange> BestExchange() const {
    std::optional<Exchange> best;
    double most = kLeastGain * all_;
    for (std::uint32_t a = 0; a < experts_; ++a) {
      for (std::uint32_t b = a + 1; b < experts_; ++b) {
        const std::uint32_t g = group_of_[a], h = group_of_[b];
        if (g == h) continue;
        const double gain = With(a, h) - With(a, g) + With(b, g) - With(b, h) - 2 * Pair(a, b);
        if (gain > most) best = {a, b}, most = gain;
      }
    }
    return best;
  }

  std::uint32_t experts_, groups_;
  std::vector<std::uint32_t> group_of_;  // groups_: none yet
  std::vector<double> pairs_;            // [expert][expert]
  std::vector<double> with_;             // [expert][group], sums of pairs
  double all_ = 0;
};

}  // namespace

ExpertGroups GroupExperts(std::uint32_t experts, std::uint32_t groups,
                          const ChosenTogether& together) {
  TROUPE_CHECK(groups >= 1 && groups <= experts);
  Division division(experts, groups, together);
  division.FillGreedily();
  division.ExchangeWhilePaying();
  return division.Groups();
}

double ShareInOneGroup(const ExpertGroups& groups, const ChosenTogether& together) {
  double within = 0, all = 0;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (std::size_t h = g; h < groups.size(); ++h) {
      for (const std::uint32_t a : groups[g]) {
        for (const std::uint32_t b : groups[h]) {
          if (g == h && b <= a) continue;
          const double pair = together(a, b);
          all += pair;
          within += g == h ? pair : 0;
        }
      }
    }
  }
  return all > 0 ? within / all : 1;
}

Status CheckGroups(const ExpertGroups& groups, std::uint32_t experts) {
  std::vector<bool> found(experts);
  std::uint32_t count = 0;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (groups[g].empty()) return DataLoss("group {}: no experts, one at least expected", g);
    if (!std::ranges::is_sorted(groups[g])) return DataLoss("group {}: experts fall", g);
    if (g > 0 && groups[g].front() <= groups[g - 1].front()) {
      return DataLoss("group {}: begins below the group before it", g);
    }
    for (const std::uint32_t expert : groups[g]) {
      if (expert >= experts) {
        return DataLoss("group {}: expert {}, below {} expected", g, expert, experts);
      }
      if (found[expert]) return DataLoss("group {}: expert {} is in two places", g, expert);
      found[expert] = true;
      ++count;
    }
  }
  if (count != experts) return DataLoss("groups of {} experts, {} expected", count, experts);
  return OkStatus();
}

}  // namespace troupe
