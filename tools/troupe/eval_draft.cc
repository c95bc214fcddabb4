#include "troupe/eval_draft.h"

#include <fmt/core.h>

#include "lab/closed_loop.h"
#include "lab/resident_draft.h"
#include "troupe/json_record.h"
#include "troupe/progress.h"
#include "troupe/run_record.h"

namespace troupe {
namespace {

constexpr std::size_t kDraftPrompts = 8, kDraftPromptTokens = 64, kTokens = 64,
                      kMostDraftLength = 64;

double Share(std::uint64_t part, std::uint64_t all) {
  return all == 0 ? 0 : static_cast<double>(part) / static_cast<double>(all);
}

double PerToken(std::uint64_t count, const ResidentDrafts& found) {
  return Share(count, found.tokens);
}

void Print(const ResidentDrafts& found) {
  fmt::print("{:.2f} times the speed without drafts: a check yields {:.2f} tokens\n",
             found.Speedup(), found.TokensPerCheck());
  fmt::print("tokens a check  {:.2f}\n", found.TokensPerCheck());
  fmt::print("right           ");
  for (std::size_t i = 0; i < found.tried.size(); ++i) {
    fmt::print("{:.0f} % ", 100 * Share(found.right[i], found.tried[i]));
  }
  fmt::print("by how far ahead, where all before it are right\n");
  fmt::print("misses a token  {:.2f} in checks, {:.2f} one by one\n",
             PerToken(found.check.misses, found), PerToken(found.plain.misses, found));
  fmt::print("named           {:.0f} % of the checks' misses, by the routes of drafts\n",
             100 * Share(found.named, found.check.misses));
  fmt::print(
      "speed           {:.2f} of that without drafts; at most {:.2f} if what is named were "
      "read meanwhile\n",
      found.Speedup(), found.MostSpeedup());
}

}  // namespace

void EvalDraft::AddTo(Options& options) {
  options.Heading("Resident drafts");
  options
      .Add("--resident-draft", length_,
           "Guess N tokens at a time with what --substitute answers from memory, check them "
           "exactly in one pass, and say how many are right and what that reads")
      .Between(std::size_t{1}, kMostDraftLength)
      .Type("N");
}

Status EvalDraft::Run(EvalFlags& flags) const {
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, flags.Open());
  TROUPE_ASSIGN_OR_RETURN(LossySwitch lossy, LossySwitch::Of(*engine));
  TROUPE_ASSIGN_OR_RETURN(const ScoredText text, flags.TakeText(engine->tokenizer()));
  Result<std::vector<std::vector<TokenId>>> prompts =
      PromptsFrom(text.ids, kDraftPrompts, kDraftPromptTokens, text.begin);
  if (!prompts.ok()) return Status(prompts.status()).WithContext(flags.text().name());
  TROUPE_ASSIGN_OR_RETURN(Session session, Session::Create(*engine));
  const ResidentDraftOptions options{.tokens = kTokens, .length = length_};
  const Result<ResidentDrafts> found = [&] {
    ProgressBar bar("drafting");
    return DraftByResidents(session, *engine, lossy, *prompts, options, [&](std::size_t done) {
      bar.UpdateCount(static_cast<double>(done), prompts->size());
    });
  }();
  if (!found.ok()) return found.status();
  if (flags.prints()) Print(*found);
  if (flags.json().empty()) return OkStatus();
  Json record;
  record["model"] = engine->path();
  record["text"] = flags.text().name();
  record["substitution"] = ChainOf(*engine).chain;
  record["slots"] = engine->plan().memory.slots;
  record["length"] = length_;
  record["tokens"] = found->tokens;
  record["checks"] = found->checks;
  record["tried"] = found->tried;
  record["right"] = found->right;
  record["named"] = found->named;
  record["check_misses"] = found->check.misses;
  record["plain_misses"] = found->plain.misses;
  record["draft_s"] = found->draft_seconds;
  record["check_s"] = found->check_seconds;
  record["plain_s"] = found->plain_seconds;
  record["speedup"] = found->Speedup();
  record["most_speedup"] = found->MostSpeedup();
  return WriteJson(record, flags.json());
}

}  // namespace troupe
