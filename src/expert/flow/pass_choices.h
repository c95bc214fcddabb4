// Which experts of a layer each group of a pass needs: whose rows an ask is for, which a demand for
// an expert comes from, and what policies that keep a history of each sequence learn. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/expert_choice.h"
#include "expert/layer_choices.h"
#include "expert/substitution/low_copies.h"

namespace troupe {

class PassChoices {
 public:
  explicit PassChoices(std::uint32_t experts) : experts_(experts), totals_(experts) {}

  void OnPassBegins(const PassFacts& pass);
  const PassFacts& pass() const { return pass_; }

  // top_k slots a row, all rows of the pass; a slot of kNoExpert needs nothing.
  void Count(std::uint32_t layer, std::span<const ExpertChoice> chosen);
  // The same, counted by the caller: [group][expert].
  void Take(std::uint32_t layer, std::span<const std::uint32_t> by_group);

  // What Count counted, of all rows together, by expert.
  std::span<const ExpertDemand> Demands();

  // What sequences are known to have chosen: without the rows of drafts, so that an expert may have
  // no askers, though rows need it. Of a layer that nothing was counted of, all rows are taken to
  // be of the first group. The answers are valid until the next call of the same function.
  std::span<const Asker> AskersOf(std::uint32_t layer, const ExpertDemand& demand);
  LayerChoices Of(std::uint32_t layer, std::span<const ExpertDemand> demands);
  RowKinds KindsOf(std::uint32_t layer, const ExpertDemand& demand) const;
  // Rows of that group that need the expert.
  std::uint32_t RowsOf(std::uint32_t layer, std::size_t group, const ExpertDemand& demand) const;
  std::size_t groups() const { return pass_.groups.empty() ? 1 : pass_.groups.size(); }

 private:
  std::uint32_t SureRowsOf(std::uint32_t layer, std::size_t group,
                           const ExpertDemand& demand) const;
  bool Splits(std::uint32_t layer) const {
    return Knows(layer) && (groups() > 1 || !sure_.empty());
  }
  bool Knows(std::uint32_t layer) const { return counted_ && layer_ == layer; }

  std::uint32_t experts_;
  PassFacts pass_;
  bool counted_ = false;
  std::uint32_t layer_ = 0;
  std::vector<std::uint32_t> counts_;  // [group][expert]
  std::vector<std::uint32_t> sure_;    // the same without the rows of drafts; empty: there are none
  std::vector<std::uint32_t> totals_;  // [expert]
  std::vector<ExpertDemand> demands_;
  std::vector<Asker> askers_;
  std::vector<std::vector<ExpertDemand>> by_group_;
  std::vector<SequenceDemands> by_sequence_;
};

}  // namespace troupe
