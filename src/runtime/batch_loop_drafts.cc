// The drafts of the answers under way: offered before a pass, taken from it, and what they did.
#include <algorithm>
#include <utility>

#include "runtime/batch_loop.h"
#include "runtime/draft_check.h"

namespace troupe {

// Where answers may differ from the exact ones they would differ by the rows of a pass as well.
std::unique_ptr<AnswerDrafts> BatchLoop::DraftsFor(const TextGeneration& generation, bool exact,
                                                   const GenerateOptions& options,
                                                   SequenceId sequence, RequestId request) const {
  if (runner_limits_.guesses == 0 || !(exact || runner_limits_.exact)) return nullptr;
  if (!drafters_.any() && options.expected.empty() && options.offered == nullptr) return nullptr;
  auto drafts = std::make_unique<AnswerDrafts>(drafters_, generation, options);
  const auto add = [&](std::unique_ptr<DraftSequence> model, DraftSource source) {
    if (model == nullptr) return;
    drafts->Add(ModelFor(std::move(model), source, options), clock_);
  };
  if (drafters_.model && runner_.draft_model() != nullptr) {
    add(runner_.draft_model()->Begin(generation.prompt()), DraftSource::kModel);
  }
  if (drafters_.heads) add(runner_.DraftByHead(sequence), DraftSource::kHead);
  if (drafters_.resident) {
    add(runner_.DraftByResidents(sequence, request), DraftSource::kResident);
  }
  return drafts;
}

std::unique_ptr<ModelDrafter> BatchLoop::ModelFor(std::unique_ptr<DraftSequence> sequence,
                                                  DraftSource source,
                                                  const GenerateOptions& options) const {
  const auto ends = [this, ignore_end = options.ignore_end,
                     stops = options.stop_tokens](TokenId token) {
    return (!ignore_end && tokenizer_.IsEndOfGeneration(token)) ||
           std::ranges::find(stops, token) != stops.end();
  };
  return std::make_unique<ModelDrafter>(
      std::move(sequence),
      DraftSampling{.sampling = options.sampler, .constraint = options.constraint, .ends = ends},
      runner_.sampler_scratch(), source);
}

void BatchLoop::CountDrafting(Active& active) {
  const auto [drafting, catch_up] = active.drafts->TakeDrafting();
  drafting_seconds_ += drafting;
  const double seconds = drafting + catch_up;
  const SpeculationUse use{.saved_seconds = -seconds, .drafting_seconds = seconds};
  active.generation.usage().speculation += use;
  active.generation.usage().decode_pass_seconds += seconds;
  counters_.speculation += use;
}

void BatchLoop::OfferDrafts() {
  PassSoFar pass;
  for (const Active& active : active_) {
    const bool decodes = !active.generation.ended() && active.generation.phase() == Phase::kDecode;
    pass.rows += decodes, pass.tokens += decodes;
  }
  std::size_t left = runner_limits_.guesses;
  for (Active& active : active_) {
    active.guessed = 0;
    if (active.drafts == nullptr || active.generation.ended()) continue;
    active.drafts->Follow(active.generation, drafts_.governor);
    const std::size_t most = std::min(active.generation.MostGuesses(), left);
    const bool looks_at_rows = static_cast<bool>(active.on_prompt);
    const std::span<const TokenId> draft =
        active.generation.phase() == Phase::kDecode
            ? active.drafts->Offer(most, drafts_, meter_.speed(), pass)
        : looks_at_rows || !runner_limits_.guesses_behind_prompts
            ? std::span<const TokenId>()
            : active.drafts->OfferExpected(most);
    active.guessed = static_cast<std::uint32_t>(draft.size());
    left -= draft.size();
    active.fed.assign(draft.begin(), draft.end());
    CountDrafting(active);
  }
}

std::uint32_t BatchLoop::TakeGuesses(Active& active, std::size_t group, const PassRows& rows,
                                     double& check_seconds) {
  const std::size_t before = active.generation.answer().tokens.size();
  const double rule_before = active.generation.answer().usage.rule_seconds;
  const std::uint32_t right = AcceptGuesses(
      active.generation, rows.tokens.last(rows.guessed),
      [&](std::size_t guesses) {
        if (rows.guessed == 0) return runner_.Logits(active.sequence);
        const Nanos start = clock_.Now();
        const std::span<const float> logits = runner_.LogitsAfterGuesses(group, guesses);
        check_seconds += Seconds(start, clock_.Now());  // more of them may be computed
        return logits;
      },
      runner_.sampler_scratch());
  counters_.generated_tokens += active.generation.answer().tokens.size() - before;
  counters_.rule_seconds += active.generation.answer().usage.rule_seconds - rule_before;
  return right;
}

void BatchLoop::NoteDrafts(std::span<const PassRows> rows, std::span<const std::uint32_t> right,
                           double seconds) {
  DraftGovernor::Pass pass{.seconds = seconds,
                           .drafting_seconds = std::exchange(drafting_seconds_, 0)};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto sure = static_cast<std::uint32_t>(rows[i].tokens.size()) - rows[i].guessed;
    (rows[i].phase == Phase::kDecode ? pass.decode_rows : pass.prompt_rows) += sure;
    pass.guessed += rows[i].guessed, pass.right += right[i];
  }
  const double saved = drafts_.governor.OnPass(pass, meter_.speed());
  counters_.drafts_compared = drafts_.governor.compared();
  meter_.PassEnded(pass.decode_rows + pass.guessed, pass.prompt_rows, seconds);
  if (runner_limits_.exact || std::ranges::all_of(rows, &PassRows::exact)) {
    exact_meter_.PassEnded(pass.decode_rows + pass.guessed, pass.prompt_rows, seconds);
  }
  counters_.pass_rows.Add(pass.decode_rows + pass.prompt_rows + pass.guessed);
  counters_.prompt_tokens += pass.prompt_rows;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].guessed == 0) continue;
    Active& active = ActiveOf(rows[i].request);
    active.drafts->Checked(rows[i].guessed, right[i], drafts_.governor);
    SpeculationUse use{.checks = 1,
                       .drafted = rows[i].guessed,
                       .accepted = right[i],
                       .saved_seconds = saved * rows[i].guessed / pass.guessed};
    use.by_source[static_cast<std::size_t>(active.drafts->offered_by())] = {
        .drafted = rows[i].guessed, .accepted = right[i]};
    active.generation.usage().speculation += use;
    counters_.speculation += use;
  }
}

}  // namespace troupe
