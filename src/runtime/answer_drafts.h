// What the drafters of one answer say comes next, and how well each has done: they are told of its
// text as it grows, the best of their drafts is offered for a check, and those that are not checked
// are compared with what the text then was. How much of a draft is worth a check is the governor's
// to say; how the check is done is draft_check.h's. Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "expert/flow/draft_governor.h"
#include "runtime/generation.h"
#include "text/draft/drafters.h"

namespace troupe {

class AnswerDrafts {
 public:
  // Longest draft that is asked for.
  static constexpr std::size_t kMost = 64;

  // Those of the choice, and of what the answer is expected to be, now or as it goes on. `before`:
  // what its sequence has before the prompt.
  AnswerDrafts(const DraftChoice& choice, const TextGeneration& generation,
               const GenerateOptions& options, std::span<const TokenId> before = {});

  // Tells the drafters what is new of the text, and the governor how drafts did that were compared.
  void Follow(const TextGeneration& generation, DraftGovernor& governor);

  // A draft of at most `most` tokens for what follows the text, as much of it as the governor lets
  // ride in the pass; of what somebody expects, all.
  std::span<const TokenId> Offer(std::size_t most, DraftGovernor& governor, const RowSpeed& speed,
                                 PassSoFar& pass);
  // The beginning of what somebody expects, to be checked behind the prompt. May come again.
  std::span<const TokenId> OfferExpected(std::size_t most);
  // So many of the tokens offered last were checked, of which the first `right` were right.
  void Checked(std::uint32_t drafted, std::uint32_t right, DraftGovernor& governor);

 private:
  // A draft that is compared with the text as it comes.
  struct Compared {
    Draft draft;
    std::size_t right = 0;
  };
  struct OfDrafter {
    std::unique_ptr<Drafter> drafter;
    Compared compared;  // without tokens: nothing is
  };

  static DraftKind KindOf(const Drafter& drafter, const Draft& draft) {
    return {.source = static_cast<std::size_t>(drafter.source()), .evidence = draft.evidence};
  }
  static void Compare(OfDrafter& one, std::span<const TokenId> tokens, DraftGovernor& governor);

  std::vector<OfDrafter> drafters_;
  std::shared_ptr<OfferedDraft> from_others_;  // null: nobody offers any
  std::size_t prompt_known_ = 0, answer_known_ = 0;
  Draft offered_;
  DraftKind kind_;  // of what was offered
};

}  // namespace troupe
