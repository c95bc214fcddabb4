// What the rows of a pass's drafts chose, kept until it is known which of them the text has: these
// are then told one by one, as if each had been a pass of its own, and the rest is forgotten. So
// whoever learns from routes learns of a text what it would have learned without drafts, in the
// same order. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/expert_choice.h"
#include "expert/expert_grid.h"
#include "expert/layer_choices.h"
#include "expert/pass_facts.h"

namespace troupe {

class GuessedRoutes {
 public:
  // Of passes with at most that many rows of drafts.
  static Bytes BytesFor(ExpertGrid grid, std::uint32_t top_k, std::uint32_t rows) {
    return Bytes(std::size_t{grid.layers} * rows * top_k * sizeof(std::uint32_t));
  }

  // Forgets what was kept.
  void OnPassBegins(const PassFacts& pass);
  bool any() const { return rows_ > 0; }

  // top_k slots a row, all rows of the pass; layers in the order of the pass.
  void Keep(std::uint32_t layer, std::span<const ExpertChoice> chosen);

  // Tells what was chosen by the first `right[g]` guesses of each group, row after row and of a row
  // layer after layer, and forgets all. The choices are good during the call.
  using Tell = std::function<void(const LayerChoices& choices)>;
  void Settle(std::span<const std::uint32_t> right, const Tell& tell);

 private:
  struct Group {
    SequenceId sequence = 0;
    std::uint32_t first = 0;  // of its guesses, among the pass's rows
    std::uint32_t guessed = 0;
  };

  std::vector<Group> groups_;  // of the pass
  std::uint32_t rows_ = 0;     // guesses in all
  std::uint32_t pass_rows_ = 0;
  std::size_t top_k_ = 0;
  std::vector<std::uint32_t> layers_;   // that were kept
  std::vector<std::uint32_t> experts_;  // [layer][guess][slot]
  std::vector<ExpertDemand> demands_;   // of the row that is told
};

}  // namespace troupe
