// Small simulations for tests.
#pragma once

#include <cmath>
#include <vector>

#include "base/rng.h"
#include "placement/placer.h"
#include "placement/problems_for_test.h"
#include "sim/simulation.h"

namespace troupe {

// One layer of one expert, one server, one device: a queue. A token costs `token_seconds`, all of
// it in the dense part; the expert is free.
inline SimulationSetup SingleQueue(double token_seconds) {
  SimulationSetup setup;
  setup.problem = SmallProblem({1}, {{{1}}});
  setup.placement = {{{{0}}}};
  setup.costs.dense.each = token_seconds;
  setup.traces = {
      {.layers = 1, .experts = 1, .top_k = 1, .tokens = 1, .ids = {0}, .sequence_starts = {0}}};
  setup.workload.users = {{.phases = {{.mean_interval_s = 1}}}};
  return setup;
}

// Requests of a Poisson process, their lengths as `tokens` draws them.
template <typename Tokens>
std::vector<RecordedRequest> PoissonRequests(std::size_t count, double mean_interval_s, Rng& rng,
                                             Tokens tokens) {
  std::vector<RecordedRequest> requests;
  double now = 0;
  for (std::size_t i = 0; i < count; ++i) {
    now -= std::log(1 - rng.Uniform()) * mean_interval_s;
    requests.push_back({.seconds = now, .input_tokens = tokens()});
  }
  return requests;
}

// A few servers, layers and tasks, with everything that can happen: remote calls, decode, a change
// of task half way and migration.
inline SimulationSetup SmallCluster(std::uint64_t seed) {
  Rng rng(17);
  SimulationSetup setup;
  for (int task = 0; task < 3; ++task) {
    std::vector<std::vector<double>> frequencies(4, std::vector<double>(12));
    for (auto& layer : frequencies) {
      for (double& f : layer) f = std::exp(2 * rng.Normal());
    }
    setup.traces.push_back(DrawTrace(frequencies, 3, 10, 30, rng));
  }
  setup.problem =
      SmallProblem({24, 24, 40}, std::vector(3, std::vector(4, std::vector<double>(12, 1))));
  setup.problem.experts_per_token = 3;
  setup.problem.servers[2].devices = {{.memory = 20, .load_bytes_per_second = 10},
                                      {.memory = 20, .load_bytes_per_second = 10}};
  for (std::uint32_t n = 0; n < 3; ++n) {
    setup.problem.servers[n].activations = ActivationsPerToken(setup.traces[n]);
    setup.workload.users.push_back(
        {.phases = {{.trace = n, .mean_interval_s = 2},
                    {.from_seconds = 400, .trace = (n + 1) % 3, .mean_interval_s = 2}}});
  }
  setup.placement = MakeDanceMoe()->Place(setup.problem).value();
  setup.costs = {
      .expert = {1e-3, 1e-4}, .dense = {1e-3, 1e-5}, .call = {1e-3, 1e-9}, .bytes_per_token = 512};
  setup.workload.prompts = 1000;
  setup.workload.output_tokens = 3;
  setup.migration.interval_s = 50;
  setup.sample_interval_s = 50;
  setup.seed = seed;
  return setup;
}

}  // namespace troupe
