// What the drafters of one answer say comes next, and how well each has done: they are told of its
// text as it grows, the best of their drafts is offered for a check, and those that are not checked
// are compared with what the text then was. Models, whose guesses take time (a draft model, and the
// model itself by the experts in memory), are asked only where that is expected to pay, or now and
// then to learn how they do. How much of a draft is worth
// a check is the governor's to say; how the check is done is draft_check.h's. Threads: one at a
// time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "expert/flow/draft_governor.h"
#include "expert/flow/draft_times.h"
#include "runtime/generation.h"
#include "text/draft/drafters.h"
#include "text/draft/model_drafter.h"

namespace troupe {

// What the passes so far say of drafts, for all answers.
struct DraftKnowledge {
  DraftGovernor governor = DraftGovernor();
  // Of the sources that take time.
  std::array<DraftTimes, kDraftSources> times;

  DraftTimes& TimesOf(DraftSource source) { return times[static_cast<std::size_t>(source)]; }
};

class AnswerDrafts {
 public:
  // Longest draft that is asked for.
  static constexpr std::size_t kMost = 64;

  // Those of the choice, and of what the answer is expected to be, now or as it goes on. `before`:
  // what its sequence has before the prompt.
  AnswerDrafts(const DraftChoice& choice, const TextGeneration& generation,
               const GenerateOptions& options, std::span<const TokenId> before = {});

  // A model's as well. The clock must outlive it.
  void Add(std::unique_ptr<ModelDrafter> model, const Clock& clock);

  // Tells the drafters what is new of the text, and the governor how drafts did that were compared.
  void Follow(const TextGeneration& generation, DraftGovernor& governor);

  // A draft of at most `most` tokens for what follows the text, as much of it as the governor lets
  // ride in the pass; of what somebody expects, all.
  std::span<const TokenId> Offer(std::size_t most, DraftKnowledge& facts, const RowSpeed& speed,
                                 PassSoFar& pass);
  // The beginning of what somebody expects, to be checked behind the prompt. May come again.
  std::span<const TokenId> OfferExpected(std::size_t most);
  // What models have taken since the last call.
  struct Drafting {
    double seconds = 0;           // that drafts took
    double catch_up_seconds = 0;  // and reading what is behind them
  };
  Drafting TakeDrafting() { return std::exchange(drafting_, {}); }
  DraftSource offered_by() const { return static_cast<DraftSource>(kind_.source); }
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

  // What the drafters say that take no time.
  struct Cheap {
    OfDrafter* best = nullptr;  // null: nothing
    std::vector<Draft> drafts;  // of each
    DraftLength offer;          // of the best
  };
  Cheap AskCheap(std::size_t most, const DraftGovernor& governor, const RowSpeed& speed,
                 const PassSoFar& pass);
  void CompareOthers(Cheap& cheap);
  struct OfModel {
    std::unique_ptr<ModelDrafter> drafter;
    const Clock* clock = nullptr;
    Compared compared = {};

    DraftKind kind() const;
  };
  struct ModelOffer {
    OfModel* model = nullptr;  // null: none pays
    DraftLength length;
  };

  // A draft of a model for the pass, if one pays more than that of another drafter would; or one to
  // compare.
  bool OfferModel(std::size_t most, const DraftLength& other, DraftKnowledge& facts,
                  const RowSpeed& speed, PassSoFar& pass);
  ModelOffer WeighModels(std::size_t most, const DraftLength& other, DraftKnowledge& facts,
                         const RowSpeed& speed, const PassSoFar& pass);
  void TryModel(std::size_t most, DraftKnowledge& facts);
  DraftCost CostOf(const OfModel& model, DraftKnowledge& facts) const;
  bool CatchUp(OfModel& model, DraftTimes& times);
  Draft AskModel(OfModel& model, std::size_t most, DraftTimes& times);

  static DraftKind KindOf(const Drafter& drafter, const Draft& draft) {
    return {.source = static_cast<std::size_t>(drafter.source()), .evidence = draft.evidence};
  }
  static void Compare(const Drafter& drafter, Compared& compared, std::span<const TokenId> tokens,
                      DraftGovernor& governor);

  std::vector<OfDrafter> drafters_;
  std::vector<OfModel> models_;
  Drafting drafting_;
  std::shared_ptr<OfferedDraft> from_others_;  // null: nobody offers any
  std::size_t prompt_known_ = 0, answer_known_ = 0;
  std::size_t text_left_ = 0;  // tokens that the answer might still have, at the last offer
  Draft offered_;
  DraftKind kind_;  // of what was offered
};

}  // namespace troupe
