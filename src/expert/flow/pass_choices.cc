#include "expert/flow/pass_choices.h"

#include <algorithm>

#include "base/check.h"

namespace troupe {

void PassChoices::OnPassBegins(const PassFacts& pass) {
  pass_ = pass;
  counted_ = false;
}

void PassChoices::Count(std::uint32_t layer, std::span<const ExpertChoice> chosen) {
  counts_.assign(groups() * experts_, 0);
  sure_.assign(pass_.guessed() > 0 ? counts_.size() : 0, 0);
  std::size_t slot = 0;
  const std::uint32_t rows = pass_.rows();
  const std::size_t top_k = rows == 0 ? 0 : chosen.size() / rows;
  TROUPE_CHECK(rows == 0 || chosen.size() == top_k * rows);
  for (std::size_t group = 0; group < groups(); ++group) {
    const std::size_t end = rows == 0 ? chosen.size() : slot + pass_.groups[group].rows * top_k;
    const std::size_t sure = sure_.empty() ? slot : slot + pass_.groups[group].sure() * top_k;
    for (; slot < end; ++slot) {
      if (chosen[slot].expert == kNoExpert) continue;
      const std::size_t at = group * experts_ + chosen[slot].expert;
      ++counts_[at];
      if (slot < sure) ++sure_[at];
    }
  }
  counted_ = true;
  layer_ = layer;
}

void PassChoices::Take(std::uint32_t layer, std::span<const std::uint32_t> by_group) {
  TROUPE_CHECK(by_group.size() == groups() * experts_);
  counts_.assign(by_group.begin(), by_group.end());
  sure_.clear();
  counted_ = true;
  layer_ = layer;
}

std::span<const ExpertDemand> PassChoices::Demands() {
  TROUPE_CHECK(counted_);
  std::ranges::fill(totals_, 0u);
  for (std::size_t i = 0; i < counts_.size(); ++i) totals_[i % experts_] += counts_[i];
  demands_.clear();
  for (std::uint32_t e = 0; e < experts_; ++e) {
    if (totals_[e] > 0) demands_.push_back({.expert = e, .tokens = totals_[e]});
  }
  return demands_;
}

std::uint32_t PassChoices::RowsOf(std::uint32_t layer, std::size_t group,
                                  const ExpertDemand& demand) const {
  if (!Knows(layer)) return group == 0 ? demand.tokens : 0;
  return counts_[group * experts_ + demand.expert];
}

std::uint32_t PassChoices::SureRowsOf(std::uint32_t layer, std::size_t group,
                                      const ExpertDemand& demand) const {
  if (!Knows(layer) || sure_.empty()) return RowsOf(layer, group, demand);
  return sure_[group * experts_ + demand.expert];
}

std::span<const Asker> PassChoices::AskersOf(std::uint32_t layer, const ExpertDemand& demand) {
  askers_.clear();
  if (!Splits(layer)) {
    const SequenceId sequence = pass_.groups.empty() ? 0 : pass_.groups.front().sequence;
    askers_.push_back({.sequence = sequence, .tokens = demand.tokens});
    return askers_;
  }
  for (std::size_t group = 0; group < groups(); ++group) {
    const std::uint32_t rows = SureRowsOf(layer, group, demand);
    if (rows > 0) askers_.push_back({.sequence = pass_.groups[group].sequence, .tokens = rows});
  }
  return askers_;
}

LayerChoices PassChoices::Of(std::uint32_t layer, std::span<const ExpertDemand> demands) {
  if (!Splits(layer)) {
    return {layer, demands, pass_.groups.empty() ? 0 : pass_.groups.front().sequence};
  }
  by_group_.resize(groups());
  by_sequence_.clear();
  for (std::size_t group = 0; group < groups(); ++group) {
    by_group_[group].clear();
    for (const ExpertDemand& demand : demands) {
      const std::uint32_t rows = SureRowsOf(layer, group, demand);
      if (rows > 0) by_group_[group].push_back({.expert = demand.expert, .tokens = rows});
    }
    by_sequence_.push_back({.sequence = pass_.groups[group].sequence, .demands = by_group_[group]});
  }
  return {layer, demands, by_sequence_};
}

RowKinds PassChoices::KindsOf(std::uint32_t layer, const ExpertDemand& demand) const {
  RowKinds kinds;
  for (std::size_t group = 0; group < groups(); ++group) {
    const RowGroupFacts facts = pass_.groups.empty() ? RowGroupFacts() : pass_.groups[group];
    const std::uint32_t rows = RowsOf(layer, group, demand);
    (facts.exact                     ? kinds.exact
     : facts.phase == Phase::kPrompt ? kinds.prompt
                                     : kinds.decode) += rows;
  }
  return kinds;
}

}  // namespace troupe
