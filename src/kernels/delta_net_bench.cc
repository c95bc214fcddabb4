// One layer of a gated delta net in the shape of Qwen3.6-35B-A3B on one thread: 32 heads of 128 x
// 128. Of one token the state's bytes count, which come from memory as those of 30 layers do; of
// many, the operations (compare with fma_peak_bench): 4 fma and a product a number of the state.
#include "kernels/delta_net.h"

#include <benchmark/benchmark.h>

#include <vector>

#include "base/rng.h"
#include "kernels/short_conv.h"
#include "kernels/target.h"

namespace troupe {
namespace {

constexpr std::size_t kHeads = 32, kDim = 128, kLayers = 30, kState = kHeads * kDim * kDim;

void BM_DeltaNet(benchmark::State& state) {
  const auto tokens = static_cast<std::size_t>(state.range(0));
  const std::size_t stride = 3 * kDim;
  Rng rng(1);
  std::vector<float> rows(tokens * stride), out(tokens * kDim);
  for (float& x : rows) x = static_cast<float>(rng.Normal() * 0.1);
  const std::vector<float> gates(tokens, 0.5f);
  // The state before and after, of all layers.
  std::vector<float> states(2 * kLayers * kState, 0.25f);
  std::size_t layer = 0;
  for (auto _ : state) {
    const float* const before = states.data() + layer * kState;
    for (std::size_t head = 0; head < kHeads; ++head) {
      const DeltaNetHead call{
          .key_dim = kDim,
          .value_dim = kDim,
          .tokens = tokens,
          .q = rows.data(),
          .k = rows.data() + kDim,
          .v = rows.data() + 2 * kDim,
          .stride = stride,
          .decay = gates.data(),
          .beta = gates.data(),
          .gate_stride = 1,
          .out = out.data(),
          .out_stride = kDim,
          .before = before + head * kDim * kDim,
          .after = states.data() + (kLayers + layer) * kState + head * kDim * kDim};
      RunDeltaNet(call, 0, call.tiles());
    }
    benchmark::ClobberMemory();
    layer = (layer + 1) % kLayers;
  }
  state.SetBytesProcessed(
      static_cast<std::int64_t>(state.iterations() * 2 * kState * sizeof(float)));
  state.counters["flop/s"] = benchmark::Counter(static_cast<double>(7 * kState * tokens),
                                                benchmark::Counter::kIsIterationInvariantRate);
  state.counters["s/token"] = benchmark::Counter(
      static_cast<double>(tokens),
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(BM_DeltaNet)->Arg(1)->Arg(8)->Arg(64)->Arg(512)->Unit(benchmark::kMicrosecond);

void BM_ShortConv(benchmark::State& state) {
  constexpr std::size_t kChannels = 8192, kTaps = 4;
  const auto tokens = static_cast<std::size_t>(state.range(0));
  std::vector<float> weights(kTaps * kChannels, 0.3f), tail((kTaps - 1) * kChannels, 0.1f);
  std::vector<float> rows(tokens * kChannels, 0.2f);
  const ShortConv conv{.channels = kChannels,
                       .taps = kTaps,
                       .weights = weights.data(),
                       .tail = tail.data(),
                       .rows = rows.data(),
                       .stride = kChannels,
                       .tokens = tokens,
                       .silu = true};
  for (auto _ : state) {
    RunShortConv(conv, 0, kChannels);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(
      static_cast<std::int64_t>(state.iterations() * 2 * rows.size() * sizeof(float)));
}
BENCHMARK(BM_ShortConv)->Arg(1)->Arg(512)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace troupe
