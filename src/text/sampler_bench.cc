// One token out of 150,000 logits: what sampling adds to every step of decoding.
#include "text/sampler.h"

#include <benchmark/benchmark.h>

#include <vector>

#include "base/rng.h"

namespace troupe {
namespace {

std::vector<float> MakeLogits() {
  Rng rng(1);
  std::vector<float> logits(150'000);
  for (float& logit : logits) logit = static_cast<float>(2.5 * rng.Normal());
  return logits;
}

void Run(benchmark::State& state, const Sampling& options) {
  const std::vector<float> logits = MakeLogits();
  const Sampler sampler = Sampler::Make(options).value();
  std::uint64_t position = 0;
  SamplerScratch scratch(logits.size());
  for (auto _ : state)
    benchmark::DoNotOptimize(sampler.Sample(logits, position++, scratch).value());
  state.SetLabel(ToString(options));
}

void BM_SampleGreedy(benchmark::State& state) { Run(state, {.temperature = 0}); }
void BM_SampleDefault(benchmark::State& state) { Run(state, {}); }
void BM_SampleTopPAlone(benchmark::State& state) {
  Run(state, {.temperature = 1, .top_k = 0, .top_p = 0.95, .min_p = 0});
}
void BM_SampleAll(benchmark::State& state) {
  Run(state, {.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0});
}
BENCHMARK(BM_SampleGreedy)->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_SampleDefault)->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_SampleTopPAlone)->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_SampleAll)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace troupe
