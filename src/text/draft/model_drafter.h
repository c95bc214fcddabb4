// Guesses what a text goes on with by a small model of the same vocabulary. It draws each token as
// the answer's own sampler does: with the same options, seed and position, after the same penalties
// and under the same rule. Where the two models are of one mind they then draw the same token, at
// any temperature (docs/design/speculation.md). The small model reads the text by itself: what of
// it, and how much at a time, is decided here; what is worth the time is not.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "text/draft/draft_model.h"
#include "text/draft/drafter.h"
#include "text/grammar/token_constraint.h"
#include "text/sampler.h"

namespace troupe {

// How the answer chooses its tokens.
struct DraftSampling {
  Sampling sampling;
  std::shared_ptr<const TokenConstraint> constraint = {};  // null: none; moved by others
  std::function<bool(TokenId)> ends = {};                  // tokens that end it; none
};

class ModelDrafter final : public Drafter {
 public:
  // Where the likeliest token is always taken, two models agree more often than where both draw:
  // how well drafts do is measured apart. At first two of three are taken to be right, and one of
  // two.
  static constexpr std::size_t kEvidenceOfLikeliest = 8, kEvidenceOfDrawn = 4;
  std::size_t evidence() const {
    return sampling_.sampling.temperature == 0 ? kEvidenceOfLikeliest : kEvidenceOfDrawn;
  }

  // The scratch must outlive it; the sampling's options have been validated. kModel or kResident.
  ModelDrafter(std::unique_ptr<DraftSequence> sequence, DraftSampling sampling,
               SamplerScratch& scratch, DraftSource source = DraftSource::kModel);

  DraftSource source() const override { return source_; }
  void Append(std::span<const TokenId> tokens, Part part) override;

  // Tokens of the text that its model has not read, or has to read again.
  std::size_t Behind() const { return text_.size() - Common(); }
  // Reads some of them, as many as go through the layers together, but never the last.
  void Read();
  // Reads the rest, and guesses.
  Draft Propose(std::size_t most) override;
  // Tokens that it can guess now: none once its model has failed, or has no room for the text.
  std::size_t Most() const;

 private:
  // What the sequence begins with of the text, without its last token: what follows that is wanted.
  std::size_t Common() const;
  bool Feed(std::span<const TokenId> tokens);
  void Guess(std::size_t most, Draft& draft);

  std::unique_ptr<DraftSequence> sequence_;
  DraftSampling sampling_;
  Sampler sampler_;
  DraftSource source_;
  SamplerScratch& scratch_;
  std::vector<TokenId> text_;
  mutable std::size_t common_ = 0;  // at least: so much of text and sequence was found the same
  std::span<const float> logits_;   // of the last feed
  bool failed_ = false;
};

}  // namespace troupe
