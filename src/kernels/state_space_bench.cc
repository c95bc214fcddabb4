// One layer of Mamba-2 in the shape of Granite-4.0-H-Tiny on one thread: 48 heads of 128 x 64. Of
// one token the state's bytes count, which come from memory as those of 36 layers do; of many, the
// operations (compare with fma_peak_bench): 2 fma and a product a number of the state.
#include "kernels/state_space.h"

#include <benchmark/benchmark.h>

#include <vector>

#include "base/rng.h"

namespace troupe {
namespace {

constexpr std::size_t kHeads = 48, kKeys = 128, kValues = 64, kLayers = 36;
constexpr std::size_t kHeadState = kKeys * kValues, kState = kHeads * kHeadState;

void BM_StateSpace(benchmark::State& state) {
  const auto tokens = static_cast<std::size_t>(state.range(0));
  const std::size_t stride = 2 * kKeys + kValues;
  Rng rng(1);
  std::vector<float> rows(tokens * stride), out(tokens * kValues);
  for (float& x : rows) x = static_cast<float>(rng.Normal() * 0.1);
  const std::vector<float> gates(tokens, 0.5f);
  // The state before and after, of all layers.
  std::vector<float> states(2 * kLayers * kState, 0.25f);
  std::size_t layer = 0;
  for (auto _ : state) {
    const float* const before = states.data() + layer * kState;
    float* const after = states.data() + (kLayers + layer) * kState;
    for (std::size_t head = 0; head < kHeads; ++head) {
      const RecurrentHead call{.key_dim = kKeys,
                               .value_dim = kValues,
                               .tokens = tokens,
                               .q = rows.data(),
                               .k = rows.data() + kKeys,
                               .v = rows.data() + 2 * kKeys,
                               .stride = stride,
                               .decay = gates.data(),
                               .beta = gates.data(),
                               .gate_stride = 1,
                               .out = out.data(),
                               .out_stride = kValues,
                               .before = before + head * kHeadState,
                               .after = after + head * kHeadState};
      RunStateSpace(call, 0.5f, 0, call.tiles());
    }
    benchmark::ClobberMemory();
    layer = (layer + 1) % kLayers;
  }
  state.SetBytesProcessed(
      static_cast<std::int64_t>(state.iterations() * 2 * kState * sizeof(float)));
  state.counters["flop/s"] = benchmark::Counter(static_cast<double>(5 * kState * tokens),
                                                benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(BM_StateSpace)->Arg(1)->Arg(8)->Arg(64)->Arg(512)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace troupe
