// What one parallel region costs with nothing to do: the price of splitting work, to be set against
// the 50 microseconds that a region of decode lasts.
#include <benchmark/benchmark.h>

#include "base/thread_pool.h"

namespace troupe {
namespace {

void BM_EmptyRegion(benchmark::State& state) {
  ThreadPool pool(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    pool.Run(pool.threads() * 4,
             [](std::size_t task, std::size_t) { benchmark::DoNotOptimize(task); });
  }
}
BENCHMARK(BM_EmptyRegion)->ArgName("threads")->Arg(1)->Arg(2)->UseRealTime();

}  // namespace
}  // namespace troupe
