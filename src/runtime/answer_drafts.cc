#include "runtime/answer_drafts.h"

#include <algorithm>
#include <utility>

#include "text/draft/expected_text.h"
#include "text/draft/offered_text.h"

namespace troupe {
namespace {

// Of a draft that is compared and not checked: more says little that is new.
constexpr std::size_t kMostCompared = 16;

}  // namespace

AnswerDrafts::AnswerDrafts(const DraftChoice& choice, const TextGeneration& generation,
                           const GenerateOptions& options, std::span<const TokenId> before)
    : from_others_(options.offered) {
  if (!options.expected.empty()) {
    drafters_.push_back({.drafter = std::make_unique<ExpectedText>(options.expected)});
  }
  if (from_others_ != nullptr) {
    drafters_.push_back({.drafter = std::make_unique<OfferedText>(from_others_)});
  }
  const std::size_t tokens =
      before.size() + generation.prompt().size() + generation.MostGuesses() + 1;
  for (auto& drafter : MakeDrafters(choice, tokens, options.constraint)) {
    if (!before.empty()) drafter->Append(before, Drafter::Part::kPrompt);
    drafters_.push_back({.drafter = std::move(drafter)});
  }
}

void AnswerDrafts::Compare(OfDrafter& one, std::span<const TokenId> tokens,
                           DraftGovernor& governor) {
  auto& [draft, right] = one.compared;
  for (const TokenId token : tokens) {
    if (draft.tokens.empty()) return;
    const bool was_right = draft.tokens[right] == token;
    right += was_right;
    if (was_right && right < draft.tokens.size()) continue;
    governor.Learn({.kind = KindOf(*one.drafter, draft),
                    .drafted = static_cast<std::uint32_t>(draft.tokens.size()),
                    .right = static_cast<std::uint32_t>(right),
                    .checked = false});
    one.compared = {};
  }
}

void AnswerDrafts::Follow(const TextGeneration& generation, DraftGovernor& governor) {
  const Answer& answer = generation.answer();
  const auto read = generation.prompt().first(answer.usage.prompt_tokens).subspan(prompt_known_);
  const auto said = std::span(answer.tokens).subspan(answer_known_);
  for (OfDrafter& one : drafters_) {
    if (!read.empty()) one.drafter->Append(read, Drafter::Part::kPrompt);
    if (said.empty()) continue;
    Compare(one, said, governor);
    one.drafter->Append(said, Drafter::Part::kAnswer);
  }
  prompt_known_ += read.size();
  answer_known_ += said.size();
}

std::span<const TokenId> AnswerDrafts::Offer(std::size_t most, DraftGovernor& governor,
                                             const RowSpeed& speed, PassSoFar& pass) {
  offered_ = {};
  most = std::min(most, kMost);
  if (most == 0) return {};
  OfDrafter* best = nullptr;
  double best_expected = 0;
  std::vector<Draft> drafts;
  for (OfDrafter& one : drafters_) {
    const Draft& draft = drafts.emplace_back(one.drafter->Propose(most));
    if (draft.tokens.empty()) continue;
    const bool is_expected = one.drafter->source() == DraftSource::kExpected;
    const double expected =
        is_expected ? static_cast<double>(draft.tokens.size()) + 1
                    : governor.Expected(KindOf(*one.drafter, draft), draft.tokens.size());
    if (expected > best_expected) best = &one, best_expected = expected;
  }
  std::uint32_t length = 0;
  for (std::size_t i = 0; i < drafters_.size(); ++i) {
    OfDrafter& one = drafters_[i];
    if (&one == best) {
      kind_ = KindOf(*one.drafter, drafts[i]);
      const bool is_expected = one.drafter->source() == DraftSource::kExpected;
      length = is_expected ? static_cast<std::uint32_t>(drafts[i].tokens.size())
                           : governor.Length(kind_, drafts[i].tokens.size(), speed, pass);
      offered_ = drafts[i];
      offered_.tokens.resize(length);
      if (length > 0) one.compared = {};  // the check says how it did
    }
    const bool is_compared = &one != best || length == 0;
    if (is_compared && one.compared.draft.tokens.empty()) {
      one.compared = {.draft = std::move(drafts[i])};
      auto& tokens = one.compared.draft.tokens;
      tokens.resize(std::min(tokens.size(), kMostCompared));
    }
  }
  return offered_.tokens;
}

std::span<const TokenId> AnswerDrafts::OfferExpected(std::size_t most) {
  offered_ = {};
  if (drafters_.empty() || drafters_.front().drafter->source() != DraftSource::kExpected) return {};
  offered_ = drafters_.front().drafter->Propose(std::min(most, kMost));
  kind_ = KindOf(*drafters_.front().drafter, offered_);
  return offered_.tokens;
}

void AnswerDrafts::Checked(std::uint32_t drafted, std::uint32_t right, DraftGovernor& governor) {
  governor.Learn({.kind = kind_, .drafted = drafted, .right = right});
  if (kind_.source == static_cast<std::size_t>(DraftSource::kOffered)) {
    from_others_->NoteCheck(drafted, right);
  }
}

}  // namespace troupe
