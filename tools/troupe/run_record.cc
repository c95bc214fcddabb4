#include "troupe/run_record.h"

#include "kernels/target.h"
#include "runtime/process_memory.h"
#include "troupe/remark.h"

namespace troupe {

std::string FiguresLine(const GenerateResult& result) {
  return fmt::format(
      "[{} tokens at {:.1f} tokens/s; prompt of {} at {:.1f} tokens/s, first token after {:.0f} "
      "ms; "
      "peak memory {}; ended: {}]",
      result.token_ids.size(), result.DecodeTokensPerSecond(), result.prompt_tokens,
      result.PrefillTokensPerSecond(), result.first_token_seconds * 1e3,
      ToString(PeakResidentMemory()), Name(result.finish));
}

Json RunRecord(const Engine& engine, std::span<const TokenId> prompt,
               const GenerateOptions& options, const GenerateResult& result) {
  const EnginePlan& plan = engine.plan();
  Json record;
  record["model"] = engine.path();
  record["prompt_ids"] = prompt;
  record["token_ids"] = result.token_ids;
  record["text"] = result.text;
  record["finish"] = Name(result.finish);
  record["prefill_tokens_per_s"] = result.PrefillTokensPerSecond();
  record["decode_tokens_per_s"] = result.DecodeTokensPerSecond();
  record["ttft_s"] = result.first_token_seconds;
  record["load_s"] = engine.load_seconds();
  record["peak_rss_bytes"] = PeakResidentMemory().count();
  record["memory_budget_bytes"] = plan.budget.count();
  record["planned_bytes"] = plan.total().count();
  record["bytes_touched_per_token"] = engine.bytes_touched_per_token().count();
  // Every expert is in memory: all uses are hits, nothing is read while tokens flow.
  record["expert_hits"] = result.expert_uses;
  record["expert_misses"] = 0;
  record["bytes_read"] = 0;
  record["stall_s"] = 0.0;
  record["substitutions"] = 0;
  record["prefetch_useful"] = 0;
  record["prefetch_wasted"] = 0;
  record["threads"] = plan.threads;
  record["context"] = plan.context;
  record["target"] = Name(ActiveTarget());
  record["sampler"] = options.sampler.ToString();
  record["seed"] = options.sampler.seed;
  return record;
}

void PrintPlan(const Engine& engine, const GenerateOptions& options) {
  Remark("model         {}\n", engine.path());
  for (const std::string& line : Describe(engine.config())) Remark("{}\n", line);
  for (const std::string& line : Describe(engine.plan())) Remark("{}\n", line);
  Remark("kernels       {}\n", Name(ActiveTarget()));
  Remark("per token     {} of weights are read\n", ToString(engine.bytes_touched_per_token()));
  Remark("sampling      {}\n", options.sampler.ToString());
}

}  // namespace troupe
