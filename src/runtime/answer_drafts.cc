#include "runtime/answer_drafts.h"

#include <algorithm>
#include <utility>

#include "text/draft/expected_text.h"
#include "text/draft/offered_text.h"

namespace troupe {
namespace {

// Of a draft that is compared and not checked: more says little that is new.
constexpr std::size_t kMostCompared = 16;
// Of a draft of a model that is only to be compared: it takes time.
constexpr std::size_t kTried = 4;
// Tokens that a model reads with the first one of a draft: those of the last check, and some.
constexpr std::size_t kAlwaysRead = 8;

double SecondsBetween(Nanos from, Nanos to) { return static_cast<double>(to - from) * 1e-9; }

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

void AnswerDrafts::Add(std::unique_ptr<ModelDrafter> model, const Clock& clock) {
  models_.push_back({.drafter = std::move(model), .clock = &clock});
}

void AnswerDrafts::Compare(const Drafter& drafter, Compared& compared,
                           std::span<const TokenId> tokens, DraftGovernor& governor) {
  auto& [draft, right] = compared;
  for (const TokenId token : tokens) {
    if (draft.tokens.empty()) return;
    const bool was_right = draft.tokens[right] == token;
    right += was_right;
    if (was_right && right < draft.tokens.size()) continue;
    governor.Learn({.kind = KindOf(drafter, draft),
                    .drafted = static_cast<std::uint32_t>(draft.tokens.size()),
                    .right = static_cast<std::uint32_t>(right),
                    .checked = false});
    compared = {};
  }
}

void AnswerDrafts::Follow(const TextGeneration& generation, DraftGovernor& governor) {
  const Answer& answer = generation.answer();
  const auto read = generation.prompt().first(answer.usage.prompt_tokens).subspan(prompt_known_);
  const auto said = std::span(answer.tokens).subspan(answer_known_);
  const auto tell = [&](Drafter& drafter, Compared& compared) {
    if (!read.empty()) drafter.Append(read, Drafter::Part::kPrompt);
    if (said.empty()) return;
    Compare(drafter, compared, said, governor);
    drafter.Append(said, Drafter::Part::kAnswer);
  };
  for (OfDrafter& one : drafters_) tell(*one.drafter, one.compared);
  for (OfModel& model : models_) tell(*model.drafter, model.compared);
  prompt_known_ += read.size();
  answer_known_ += said.size();
}

AnswerDrafts::Cheap AnswerDrafts::AskCheap(std::size_t most, const DraftGovernor& governor,
                                           const RowSpeed& speed, const PassSoFar& pass) {
  Cheap cheap;
  double best_expected = 0;
  for (OfDrafter& one : drafters_) {
    const Draft& draft = cheap.drafts.emplace_back(one.drafter->Propose(most));
    if (draft.tokens.empty()) continue;
    const DraftKind kind = KindOf(*one.drafter, draft);
    const bool is_expected = one.drafter->source() == DraftSource::kExpected;
    const double expected = is_expected ? static_cast<double>(draft.tokens.size()) + 1
                                        : governor.Expected(kind, draft.tokens.size());
    if (expected <= best_expected) continue;
    cheap.best = &one;
    best_expected = expected;
    cheap.offer = is_expected
                      ? DraftLength{.tokens = static_cast<std::uint32_t>(draft.tokens.size())}
                      : governor.Weigh(kind, draft.tokens.size(), speed, pass);
  }
  return cheap;
}

// Drafts that are not checked, of drafters that have none under way.
void AnswerDrafts::CompareOthers(Cheap& cheap) {
  for (std::size_t i = 0; i < drafters_.size(); ++i) {
    Compared& compared = drafters_[i].compared;
    if (&drafters_[i] == cheap.best && cheap.offer.tokens > 0) {
      compared = {};  // the check says how it did
    } else if (compared.draft.tokens.empty()) {
      compared = {.draft = std::move(cheap.drafts[i])};
      auto& tokens = compared.draft.tokens;
      tokens.resize(std::min(tokens.size(), kMostCompared));
    }
  }
}

std::span<const TokenId> AnswerDrafts::Offer(std::size_t most, DraftKnowledge& facts,
                                             const RowSpeed& speed, PassSoFar& pass) {
  offered_ = {};
  text_left_ = most;
  most = std::min(most, kMost);
  if (most == 0) return {};
  Cheap cheap = AskCheap(most, facts.governor, speed, pass);
  const bool is_expected =
      cheap.best != nullptr && cheap.best->drafter->source() == DraftSource::kExpected;
  if (!is_expected && OfferModel(most, cheap.offer, facts, speed, pass)) {
    cheap.offer.tokens = 0;
  } else if (cheap.offer.tokens > 0) {
    const auto best = static_cast<std::size_t>(cheap.best - drafters_.data());
    kind_ = KindOf(*cheap.best->drafter, cheap.drafts[best]);
    offered_ = cheap.drafts[best];
    offered_.tokens.resize(cheap.offer.tokens);
    if (!is_expected) facts.governor.Add(kind_, cheap.offer, pass);
  }
  CompareOthers(cheap);
  return offered_.tokens;
}

DraftKind AnswerDrafts::OfModel::kind() const {
  return {.source = static_cast<std::size_t>(drafter->source()), .evidence = drafter->evidence()};
}

DraftCost AnswerDrafts::CostOf(const OfModel& model, DraftKnowledge& facts) const {
  const std::size_t behind = model.drafter->Behind();
  return facts.TimesOf(model.drafter->source()).Cost(behind > kAlwaysRead ? behind : 0, text_left_);
}

AnswerDrafts::ModelOffer AnswerDrafts::WeighModels(std::size_t most, const DraftLength& other,
                                                   DraftKnowledge& facts, const RowSpeed& speed,
                                                   const PassSoFar& pass) {
  ModelOffer best;
  for (OfModel& model : models_) {
    const std::size_t possible = std::min(most, model.drafter->Most());
    if (possible == 0) continue;
    const DraftLength offer =
        facts.governor.Weigh(model.kind(), possible, speed, pass, CostOf(model, facts));
    const double to_beat = best.model != nullptr ? best.length.rate
                           : other.tokens > 0    ? other.rate
                                                 : 0;
    if (offer.tokens > 0 && offer.rate > to_beat) best = {.model = &model, .length = offer};
  }
  return best;
}

// One at a time, in turn as their drafts end.
void AnswerDrafts::TryModel(std::size_t most, DraftKnowledge& facts) {
  for (OfModel& model : models_) {
    if (!model.compared.draft.tokens.empty()) continue;
    const std::size_t tried = std::min({most, model.drafter->Most(), kTried});
    if (tried == 0) continue;
    const DraftCost cost = CostOf(model, facts);
    const double takes = cost.catch_up + cost.a_token * static_cast<double>(tried);
    DraftTimes& times = facts.TimesOf(model.drafter->source());
    if (!facts.governor.MayTry(takes)) continue;
    const auto taken = [&] { return drafting_.seconds + drafting_.catch_up_seconds; };
    const double before = taken();
    const bool can = CatchUp(model, times);
    if (can) model.compared = {.draft = AskModel(model, tried, times)};
    facts.governor.NoteTried(taken() - before);
    if (can) return;
  }
}

bool AnswerDrafts::OfferModel(std::size_t most, const DraftLength& other, DraftKnowledge& facts,
                              const RowSpeed& speed, PassSoFar& pass) {
  const ModelOffer best = WeighModels(most, other, facts, speed, pass);
  if (best.model == nullptr) {
    TryModel(most, facts);
    return false;
  }
  DraftTimes& times = facts.TimesOf(best.model->drafter->source());
  if (!CatchUp(*best.model, times)) return false;
  offered_ = AskModel(*best.model, best.length.tokens, times);
  if (offered_.tokens.empty()) return false;
  best.model->compared = {};
  kind_ = best.model->kind();
  DraftLength offer = best.length;
  offer.tokens = static_cast<std::uint32_t>(offered_.tokens.size());
  facts.governor.Add(kind_, offer, pass);
  return true;
}

// As much as goes through the model's layers together; whether a draft can begin.
bool AnswerDrafts::CatchUp(OfModel& model, DraftTimes& times) {
  const std::size_t behind = model.drafter->Behind();
  if (behind <= kAlwaysRead) return true;
  const Nanos start = model.clock->Now();
  model.drafter->Read();
  const std::size_t left = model.drafter->Behind();
  const double seconds = SecondsBetween(start, model.clock->Now());
  times.NoteRead(behind - left, seconds);
  drafting_.catch_up_seconds += seconds;
  return left <= kAlwaysRead && model.drafter->Most() > 0;
}

Draft AnswerDrafts::AskModel(OfModel& model, std::size_t most, DraftTimes& times) {
  const Nanos start = model.clock->Now();
  Draft draft = model.drafter->Propose(most);
  const double seconds = SecondsBetween(start, model.clock->Now());
  times.NoteDraft(draft.tokens.size(), seconds);
  drafting_.seconds += seconds;
  return draft;
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
