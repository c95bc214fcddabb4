#include "text/draft/model_drafter.h"

#include <algorithm>
#include <utility>

namespace troupe {

ModelDrafter::ModelDrafter(std::unique_ptr<DraftSequence> sequence, DraftSampling sampling,
                           SamplerScratch& scratch, DraftSource source)
    : sequence_(std::move(sequence)),
      sampling_(std::move(sampling)),
      sampler_(Sampler::Make(sampling_.sampling).value()),
      source_(source),
      scratch_(scratch) {}

void ModelDrafter::Append(std::span<const TokenId> tokens, Part) {
  text_.insert(text_.end(), tokens.begin(), tokens.end());
  for (const TokenId token : tokens) sampler_.Accept(token);
}

std::size_t ModelDrafter::Common() const {
  const std::span<const TokenId> read = sequence_->tokens();
  const std::size_t most = std::min(read.size(), text_.size());
  while (common_ < most && read[common_] == text_[common_]) ++common_;
  return std::min(common_, text_.size() - std::min<std::size_t>(text_.size(), 1));
}

std::size_t ModelDrafter::Most() const {
  if (failed_ || text_.empty()) return 0;
  // What is guessed last is fed to nobody.
  return sequence_->most_tokens() + 1 - std::min(sequence_->most_tokens() + 1, text_.size());
}

bool ModelDrafter::Feed(std::span<const TokenId> tokens) {
  const Result<std::span<const float>> logits = sequence_->Feed(tokens);
  failed_ = !logits.ok();
  if (!failed_) logits_ = *logits;
  return !failed_;
}

void ModelDrafter::Read() {
  if (Most() == 0) return;
  const std::size_t common = Common();
  const std::size_t count = std::min(text_.size() - 1 - common, sequence_->most_rows());
  if (count == 0) return;
  common_ = common;
  sequence_->Truncate(common);
  Feed(std::span(text_).subspan(common, count));
}

Draft ModelDrafter::Propose(std::size_t most) {
  Draft draft{.tokens = {}, .evidence = evidence()};
  most = std::min(most, Most());
  if (most == 0) return draft;
  while (!failed_ && Behind() > sequence_->most_rows()) Read();
  if (failed_) return draft;
  common_ = Common();
  sequence_->Truncate(common_);
  if (Feed(std::span(text_).subspan(common_))) Guess(most, draft);
  sequence_->Rest();
  return draft;
}

// From the logits of the text's last token on.
void ModelDrafter::Guess(std::size_t most, Draft& draft) {
  Sampler sampler = sampler_;
  std::optional<TokenConstraint> constraint;
  if (sampling_.constraint != nullptr) constraint = *sampling_.constraint;
  for (;;) {
    const TokenSet* allowed = nullptr;
    if (constraint) {
      const Result<const TokenSet*> may_come = constraint->Allowed();
      if (!may_come.ok()) break;
      allowed = *may_come;
    }
    const std::size_t position = text_.size() + draft.tokens.size();
    const Result<TokenId> token = sampler.Sample(logits_, position, scratch_, allowed);
    if (!token.ok() || (sampling_.ends && sampling_.ends(*token))) break;
    if (constraint && !constraint->Advance(*token).ok()) break;
    sampler.Accept(*token);
    draft.tokens.push_back(*token);
    if (draft.tokens.size() == most || !Feed({&*token, 1})) break;
  }
}

}  // namespace troupe
