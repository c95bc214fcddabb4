#include "troupe/eval_head.h"

#include <fmt/core.h>

#include <algorithm>

#include "lab/closed_loop.h"
#include "lab/head_guesses.h"
#include "troupe/json_record.h"
#include "troupe/progress.h"

namespace troupe {
namespace {

constexpr std::size_t kHeadPrompts = 32, kHeadPromptTokens = 64, kHeadTokens = 128,
                      kMostHeadLength = 16;

void Print(const HeadGuesses& found) {
  fmt::print("right           ");
  for (std::size_t i = 0; i < found.tried.size(); ++i) {
    const auto tried = static_cast<double>(std::max<std::uint64_t>(found.tried[i], 1));
    fmt::print("{:.1f} % ", 100 * static_cast<double>(found.right[i]) / tried);
  }
  fmt::print("by how far ahead, where all before it are right\n");
  fmt::print("tokens a check  {:.2f}\n", found.TokensPerCheck());
  fmt::print("costs           {:.2f} passes for having a draft, {:.2f} for checking it\n",
             found.DraftCost(), found.CheckCost());
  fmt::print("speed           {:.2f} of that without drafts, if every token were guessed\n",
             found.Speedup());
}

}  // namespace

void EvalHead::AddTo(Options& options) {
  options.Heading("Drafts of the model's own head");
  options
      .Add("--head-draft", length_,
           "Go on with 32 pieces of the text, guess N tokens at a time with the model's own head, "
           "and say how many guesses are right and what they and their checks take")
      .Between(std::size_t{1}, kMostHeadLength)
      .Type("N");
  options
      .Add("--draft-temperature", temperature_,
           "Temperature of these answers and guesses (0: always the most likely token)")
      .Between(0.0, 100.0)
      .Needs("--head-draft")
      .Type("T");
}

Status EvalHead::Run(EvalFlags& flags) const {
  flags.engine().GuessByHead();
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, flags.Open());
  TROUPE_ASSIGN_OR_RETURN(const ScoredText text, flags.TakeText(engine->tokenizer()));
  Result<std::vector<std::vector<TokenId>>> prompts =
      PromptsFrom(text.ids, kHeadPrompts, kHeadPromptTokens, text.begin);
  if (!prompts.ok()) return Status(prompts.status()).WithContext(flags.text().name());
  HeadGuessOptions options{.tokens = kHeadTokens, .length = length_, .sampling = {}};
  options.sampling.temperature = temperature_;
  const Result<HeadGuesses> found = [&] {
    ProgressBar bar("guessing");
    return GuessByHead(*engine, *prompts, options, [&](std::size_t done) {
      bar.UpdateCount(static_cast<double>(done), prompts->size());
    });
  }();
  if (!found.ok()) return found.status();
  if (flags.prints()) Print(*found);
  if (flags.json().empty()) return OkStatus();
  Json record;
  record["model"] = engine->path();
  record["text"] = flags.text().name();
  record["temperature"] = options.sampling.temperature;
  record["length"] = length_;
  record["tokens"] = found->tokens;
  record["tried"] = found->tried;
  record["right"] = found->right;
  record["tokens_per_check"] = found->TokensPerCheck();
  record["draft_cost"] = found->DraftCost();
  record["check_cost"] = found->CheckCost();
  record["speedup"] = found->Speedup();
  return WriteJson(record, flags.json());
}

}  // namespace troupe
