// What one core can do at most, the yardstick of the other benchmarks: independent chains of fma in
// registers, per target.
#include <benchmark/benchmark.h>

#include "kernels/target.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/fma_peak_bench.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::HWY_NAMESPACE {

// Ten chains hide the latency of any fma unit we know (at most 5 cycles, 2 a cycle).
inline constexpr std::size_t kChains = 10;

// Returns the floating-point operations done.
double FmaChains(std::size_t steps, float* sink) {
  const LaneTag d;
  const LaneVec factor = hn::Set(d, 0.999f), addend = hn::Set(d, 0.001f);
  LaneVec sums[kChains];
  for (std::size_t c = 0; c < kChains; ++c) sums[c] = hn::Set(d, static_cast<float>(c));
  for (std::size_t i = 0; i < steps; ++i) {
    for (LaneVec& sum : sums) sum = Fma(sum, factor, addend);
  }
  LaneVec total = hn::Zero(d);
  for (const LaneVec& sum : sums) total = hn::Add(total, sum);
  *sink = hn::GetLane(total);
  return 2.0 * static_cast<double>(steps * kChains * kVectorLanes);
}

}  // namespace troupe::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe {
namespace {

HWY_EXPORT(FmaChains);

void BM_FmaPeak(benchmark::State& state) {
  const Target target = SupportedTargets()[static_cast<std::size_t>(state.range(0))];
  ForceTarget(target);
  double flops = 0;
  float sink = 0;
  for (auto _ : state) {
    flops = HWY_DYNAMIC_DISPATCH(FmaChains)(100'000, &sink);
    benchmark::DoNotOptimize(sink);
  }
  ForceTarget(std::nullopt);
  state.SetLabel(std::string(Name(target)));
  state.counters["flop/s"] =
      benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(BM_FmaPeak)->DenseRange(0, static_cast<int>(SupportedTargets().size()) - 1);

}  // namespace
}  // namespace troupe
#endif
