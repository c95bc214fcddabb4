// Answers that copy from their prompt, with drafts by look-up and without: tokens a second. Small
// models do not copy, so the answer is written for the model, token by token, as the end of
// reasoning is; each token takes the pass that it would take. TROUPE_BENCH_MODEL names the model,
// TROUPE_BENCH_PROMPT and TROUPE_BENCH_ANSWER files of text; bench/speculation sets all three.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <map>
#include <string>

#include "base/check.h"
#include "io/text_file.h"
#include "runtime/generator.h"

namespace troupe {
namespace {

std::string Setting(const char* name) {
  const char* const value = std::getenv(name);
  TROUPE_CHECK(value != nullptr);
  return value;
}

std::string TextOf(const char* name) { return ReadWholeText(Setting(name), 1_MiB).value(); }

// With that percent of the experts in memory, and the others behind a link.
Engine& EngineWith(std::int64_t percent) {
  static std::map<std::int64_t, std::unique_ptr<Engine>> engines;
  std::unique_ptr<Engine>& engine = engines[percent];
  if (engine != nullptr) return *engine;
  EngineOptions options{.context = 2048};
  engine = Engine::Open(Setting("TROUPE_BENCH_MODEL"), options).value();
  if (percent == 100) return *engine;
  const std::uint32_t all = engine->plan().needs.AllExperts();
  engine.reset();
  options.offload.slots = static_cast<std::uint32_t>(all * percent / 100);
  options.offload.link = {.bytes_per_second = 500 << 20, .latency_seconds = 1e-4};
  engine = Engine::Open(Setting("TROUPE_BENCH_MODEL"), options).value();
  return *engine;
}

void BM_CopiedAnswer(benchmark::State& state) {
  Engine& engine = EngineWith(state.range(0));
  const Tokenizer& tokenizer = engine.tokenizer();
  const auto prompt = tokenizer.Encode(TextOf("TROUPE_BENCH_PROMPT")).value();
  GenerateOptions options;
  options.reasoning_end =
      tokenizer.Encode(TextOf("TROUPE_BENCH_ANSWER"), {.add_special = false}).value();
  options.max_tokens = options.reasoning_end.size();
  options.reasoning = Reasoning{
      .open = "<x>", .closes = {"</x>"}, .begun = true, .most_tokens = 0, .end = "written"};
  Speculation speculation;
  speculation.drafters.lookup = true;
  Session session = Session::Create(engine).value();
  double tokens = 0, seconds = 0, drafted = 0, right = 0;
  for (auto _ : state) {
    session.Truncate(0);
    const Answer answer = Generate(session, tokenizer, prompt, options,
                                   {.speculation = state.range(1) == 0 ? nullptr : &speculation})
                              .value();
    TROUPE_CHECK(answer.tokens == options.reasoning_end);
    tokens += static_cast<double>(answer.usage.decode_steps);
    seconds += answer.usage.decode_seconds;
    drafted += static_cast<double>(answer.usage.speculation.drafted);
    right += static_cast<double>(answer.usage.speculation.accepted);
    state.SetIterationTime(answer.usage.decode_seconds);
  }
  state.counters["tokens_per_s"] = tokens / seconds;
  state.counters["drafted_a_token"] = drafted / tokens;
  state.counters["right"] = drafted > 0 ? right / drafted : 0;
}
BENCHMARK(BM_CopiedAnswer)
    ->ArgNames({"percent", "drafts"})
    ->ArgsProduct({{100, 50}, {0, 1}})
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace troupe
