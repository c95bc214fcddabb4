// Answers that copy from their prompt, with drafts by look-up and without: tokens a second. Small
// models do not copy, so the answer is written for the model, token by token, as the end of
// reasoning is; each token takes the pass that it would take. TROUPE_BENCH_MODEL names the model,
// TROUPE_BENCH_PROMPT and TROUPE_BENCH_ANSWER files of text; bench/speculation sets all three.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "io/text_file.h"
#include "runtime/batch_loop.h"
#include "runtime/engine.h"
#include "runtime/engine_runner.h"

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

// Of the one request, alone in its loop.
Answer AnswerOf(EngineRunner& runner, const Tokenizer& tokenizer, const BatchRequest& request,
                const DraftChoice& drafters) {
  const MonotonicClock clock;
  BatchLoop loop(runner, tokenizer, clock, {}, drafters);
  const auto ticket = std::make_shared<Ticket>(runner.NewRequest());
  TROUPE_CHECK(loop.Check(request).ok());
  loop.Add(ticket, request, clock.Now());
  for (;;) {
    for (EndedRequest& ended : loop.Step()) return std::move(ended.answer).value();
  }
}

void BM_CopiedAnswer(benchmark::State& state) {
  Engine& engine = EngineWith(state.range(0));
  const Tokenizer& tokenizer = engine.tokenizer();
  BatchRequest request{.prompt = tokenizer.Encode(TextOf("TROUPE_BENCH_PROMPT")).value(),
                       .exact = true};
  GenerateOptions& options = request.options;
  options.reasoning_end =
      tokenizer.Encode(TextOf("TROUPE_BENCH_ANSWER"), {.add_special = false}).value();
  options.max_tokens = options.reasoning_end.size();
  options.reasoning = Reasoning{
      .open = "<x>", .closes = {"</x>"}, .begun = true, .most_tokens = 0, .end = "written"};
  EngineRunner runner(engine, /*keeps_prefixes=*/false);
  double tokens = 0, seconds = 0, drafted = 0, right = 0;
  for (auto _ : state) {
    const Answer answer = AnswerOf(runner, tokenizer, request, {.lookup = state.range(1) != 0});
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
