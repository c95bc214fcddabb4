// How fast 1 MB of text becomes tokens: prose, and the texts that are worst for merging (one long
// word) and for cutting into words (one long run of blanks).
#include <benchmark/benchmark.h>

#include <array>
#include <string>

#include "test_vocab.h"

namespace troupe {
namespace {

constexpr std::size_t kTextBytes = 1'000'000;
constexpr std::array kVocabs = {"llama-spm", "gpt-2", "deepseek-llm", "starcoder"};

enum TextKind { kProse, kOneWord, kBlanks };

std::string MakeText(TextKind kind) {
  if (kind == kOneWord) return std::string(kTextBytes, 'a');
  if (kind == kBlanks) return std::string(kTextBytes, ' ');
  const std::string prose = ReadTestFile("prose/mixed.txt").value();
  std::string text;
  while (text.size() < kTextBytes) text += prose;
  return text;
}

void BM_Encode(benchmark::State& state) {
  const auto tokenizer =
      LoadTestTokenizer(kVocabs[static_cast<std::size_t>(state.range(0))]).value();
  const std::string text = MakeText(static_cast<TextKind>(state.range(1)));
  std::size_t tokens = 0;
  for (auto _ : state) {
    const auto ids = tokenizer->Encode(text);
    TROUPE_CHECK(ids.ok());
    tokens += ids->size();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
  state.counters["tokens"] =
      benchmark::Counter(static_cast<double>(tokens), benchmark::Counter::kIsRate);
  state.SetLabel(kVocabs[static_cast<std::size_t>(state.range(0))]);
}
BENCHMARK(BM_Encode)
    ->ArgNames({"vocabulary", "text"})
    ->ArgsProduct({{0, 1, 2, 3}, {kProse, kOneWord, kBlanks}})
    ->Unit(benchmark::kMillisecond);

void BM_MakeTokenizer(benchmark::State& state) {
  const char* name = kVocabs[static_cast<std::size_t>(state.range(0))];
  const Vocab vocab = LoadTestVocab(name).value();
  for (auto _ : state) benchmark::DoNotOptimize(MakeTokenizer(vocab));
  state.SetLabel(name);
}
BENCHMARK(BM_MakeTokenizer)->DenseRange(0, 3)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace troupe
