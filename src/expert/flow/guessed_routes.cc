#include "expert/flow/guessed_routes.h"

#include <algorithm>

#include "base/check.h"

namespace troupe {

void GuessedRoutes::OnPassBegins(const PassFacts& pass) {
  groups_.clear();
  layers_.clear();
  experts_.clear();
  rows_ = pass_rows_ = 0;
  for (const RowGroupFacts& group : pass.groups) {
    groups_.push_back(
        {.sequence = group.sequence, .first = pass_rows_ + group.sure(), .guessed = group.guessed});
    pass_rows_ += group.rows;
    rows_ += group.guessed;
  }
}

void GuessedRoutes::Keep(std::uint32_t layer, std::span<const ExpertChoice> chosen) {
  TROUPE_CHECK(any() && chosen.size() % pass_rows_ == 0);
  top_k_ = chosen.size() / pass_rows_;
  layers_.push_back(layer);
  for (const Group& group : groups_) {
    for (const ExpertChoice& choice :
         chosen.subspan(group.first * top_k_, group.guessed * top_k_)) {
      experts_.push_back(choice.expert);
    }
  }
}

void GuessedRoutes::Settle(std::span<const std::uint32_t> right, const Tell& tell) {
  TROUPE_CHECK(right.size() == groups_.size());
  std::size_t before = 0;  // guesses of the groups before
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    TROUPE_CHECK(right[g] <= groups_[g].guessed);
    for (std::size_t guess = before; guess < before + right[g]; ++guess) {
      for (std::size_t at = 0; at < layers_.size(); ++at) {
        const auto experts = std::span(experts_).subspan((at * rows_ + guess) * top_k_, top_k_);
        demands_.clear();
        for (const std::uint32_t expert : experts) {
          if (expert != kNoExpert) demands_.push_back({.expert = expert, .tokens = 1});
        }
        std::ranges::sort(demands_, {}, &ExpertDemand::expert);
        tell({layers_[at], demands_, groups_[g].sequence});
      }
    }
    before += groups_[g].guessed;
  }
  OnPassBegins({});
}

}  // namespace troupe
