// How long a placement takes, on one core: a small cluster of one server a device with every
// server's own activations, and the largest expert-parallel deployment there is a published shape
// for.
#include <benchmark/benchmark.h>

#include <cmath>

#include "base/rng.h"
#include "placement/placer.h"

namespace troupe {
namespace {

// Skewed and different on every server, with memory for `times` times the model in all.
PlacementProblem Cluster(std::uint32_t servers, std::uint32_t layers, std::uint32_t experts,
                         double times) {
  Rng rng(1);
  PlacementProblem problem;
  problem.experts = ExpertTable::Equal(layers, experts, 16_MiB);
  problem.experts_per_token = 6;
  problem.links.usual = {.latency_seconds = 1e-3, .bytes_per_second = 62.5e6};
  const auto slots = static_cast<std::uint64_t>(std::ceil(times * layers * experts / servers));
  for (std::uint32_t n = 0; n < servers; ++n) {
    PlacementServer server{.name = fmt::format("{}", n)};
    server.devices = {{.memory = slots * (16_MiB).count(), .load_bytes_per_second = 1e9}};
    for (std::uint32_t e = 0; e < problem.experts.size(); ++e) {
      server.activations.push_back(std::exp(rng.Normal()));
    }
    problem.servers.push_back(std::move(server));
  }
  return problem;
}

PlacerOptions Options(const PlacementProblem& problem) {
  PlacerOptions options;
  options.latency.costs = {.expert = {2e-5, 1e-6},
                           .dense = {1e-4, 1e-6},
                           .call = {1e-4, 1e-10},
                           .bytes_per_token = 4096};
  options.latency.passes.assign(
      problem.server_count(), {{.tokens = 250, .per_second = 0.1}, {.tokens = 1, .per_second = 2}});
  return options;
}

void Run(benchmark::State& state, std::string_view name, std::uint32_t servers,
         std::uint32_t layers, std::uint32_t experts) {
  const PlacementProblem problem = Cluster(servers, layers, experts, 1.67);
  const auto placer = MakePlacer(name, Options(problem)).value();
  for (auto _ : state) benchmark::DoNotOptimize(placer->Place(problem).value());
}

// bench/placement reads these names.
const bool kRegistered = [] {
  for (const std::string_view name : PlacerNames()) {
    const std::string text(name);
    benchmark::RegisterBenchmark(("place/4x26x64/" + text).c_str(), [name](auto& state) {
      Run(state, name, 4, 26, 64);
    })->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(("place/256x58x256/" + text).c_str(),
                                 [name](auto& state) { Run(state, name, 256, 58, 256); })
        ->Unit(benchmark::kMillisecond)
        ->Iterations(1);
  }
  return true;
}();

}  // namespace
}  // namespace troupe
