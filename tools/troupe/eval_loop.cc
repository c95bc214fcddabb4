#include "troupe/eval_loop.h"

#include <fmt/core.h>

#include <cmath>

#include "lab/closed_loop.h"
#include "troupe/eval_report.h"
#include "troupe/json_record.h"
#include "troupe/options.h"
#include "troupe/progress.h"
#include "troupe/run_record.h"

namespace troupe {
namespace {

void Print(const LoopComparison& found, std::size_t tokens) {
  fmt::print(
      "{:.1f} % of the tokens are those of exact answers, and {} of {} answers are the same\n",
      100 * found.same_tokens.mean, found.unchanged, found.answers.size());
  fmt::print("answers         {} of {} tokens each, {} of them the same throughout\n",
             found.answers.size(), tokens, found.unchanged);
  fmt::print("same tokens     {} %\n", ToString(found.same_tokens, 100));
  fmt::print("first change    after {} tokens\n", ToString(found.first_change));
  fmt::print("perplexity      {:.4f} of the exact text, {:.4f} of the other, by the exact model\n",
             std::exp(found.exact_nll.mean), std::exp(found.lossy_nll.mean));
  fmt::print("nats per token  {} more in the other text\n", ToString(found.nll_change));
  fmt::print("in brackets     what holds the true value 95 times of 100, by {} answers\n",
             found.answers.size());
}

Json AnswerJson(const LoopAnswer& answer) {
  return {{"exact_ids", answer.exact},     {"token_ids", answer.lossy},
          {"same", answer.same},           {"first_change", answer.first_change},
          {"exact_nll", answer.exact_nll}, {"nll", answer.lossy_nll}};
}

}  // namespace

void EvalLoop::AddTo(Options& options) {
  options.Heading("Closed loop");
  options
      .Add(
          "--closed-loop", tokens_,
          "Generate N most likely tokens after each of several prompts from the text, once exactly "
          "and once with --substitute or --low-copy decode, and compare")
      .Between(std::size_t{1}, kMostTokens)
      .Type("N");
  options
      .Add("--prompts", prompts_, "Number of prompts for --closed-loop, spread over the text (8)")
      .Between(std::size_t{1}, kMostTokens)
      .Needs("--closed-loop")
      .Type("N");
  options.Add("--prompt-tokens", prompt_tokens_, "Length of each prompt in tokens (64)")
      .Between(std::size_t{1}, kMostTokens)
      .Needs("--closed-loop")
      .Type("N");
}

Status EvalLoop::Run(EvalFlags& flags) const {
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, flags.Open());
  TROUPE_ASSIGN_OR_RETURN(LossySwitch lossy, LossySwitch::Of(*engine));
  TROUPE_ASSIGN_OR_RETURN(const ScoredText text, flags.TakeText(engine->tokenizer()));
  Result<std::vector<std::vector<TokenId>>> prompts =
      PromptsFrom(text.ids, prompts_, prompt_tokens_, text.begin);
  if (!prompts.ok()) return Status(prompts.status()).WithContext(flags.text().name());
  TROUPE_ASSIGN_OR_RETURN(Session session, Session::Create(*engine));
  Result<LoopComparison> found = [&] {
    ProgressBar bar("answering");
    return CompareInTheLoop(session, lossy, *prompts, {.tokens = tokens_}, [&](std::size_t done) {
      bar.UpdateCount(static_cast<double>(done), prompts->size());
    });
  }();
  if (!found.ok()) return found.status();
  if (flags.prints()) Print(*found, tokens_);
  if (flags.json().empty()) return OkStatus();
  Json record;
  record["model"] = engine->path();
  record["text"] = flags.text().name();
  record["substitution"] = ChainOf(*engine).chain;
  record["prompts"] = found->answers.size();
  record["prompt_tokens"] = prompt_tokens_;
  record["tokens"] = tokens_;
  record["unchanged"] = found->unchanged;
  AddInterval(record, "same_tokens", found->same_tokens);
  AddInterval(record, "first_change", found->first_change);
  AddInterval(record, "exact_nll", found->exact_nll);
  AddInterval(record, "nll", found->lossy_nll);
  AddInterval(record, "nll_change", found->nll_change);
  AddUsage(record, found->usage);
  record["answers"] = Json::Array();
  for (const LoopAnswer& answer : found->answers) record["answers"].push_back(AnswerJson(answer));
  return WriteJson(record, flags.json());
}

}  // namespace troupe
