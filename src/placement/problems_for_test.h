// Placement problems for tests: small ones written down, and random ones of every shape.
#pragma once

#include <cmath>
#include <vector>

#include "base/rng.h"
#include "placement/problem.h"

namespace troupe {

// Servers with one device each for `slots` experts of one byte; activations[server][layer][expert].
inline PlacementProblem SmallProblem(
    const std::vector<std::uint64_t>& slots,
    const std::vector<std::vector<std::vector<double>>>& activations) {
  PlacementProblem problem;
  const auto layers = static_cast<std::uint32_t>(activations.front().size());
  const auto experts = static_cast<std::uint32_t>(activations.front().front().size());
  problem.experts = ExpertTable::Equal(layers, experts, 1_B);
  problem.links.usual = {.latency_seconds = 0.001, .bytes_per_second = 1e6};
  for (std::size_t n = 0; n < slots.size(); ++n) {
    PlacementServer server{.name = fmt::format("s{}", n)};
    server.devices = {{.memory = slots[n], .load_bytes_per_second = 10}};
    for (const auto& layer : activations[n]) {
      server.activations.insert(server.activations.end(), layer.begin(), layer.end());
    }
    problem.servers.push_back(std::move(server));
  }
  return problem;
}

struct RandomShape {
  bool equal_sizes = true;
  std::uint32_t most_servers = 5, most_layers = 4, most_experts = 9;
  double most_memory = 3;  // of all devices, in times of what the experts need
};

// Valid by construction where sizes are equal; where they are not there is at least 1.5 times the
// memory that the experts need, on devices that each hold the largest several times.
inline PlacementProblem RandomProblem(Rng& rng, const RandomShape& shape = {}) {
  PlacementProblem problem;
  const auto layers = 1 + static_cast<std::uint32_t>(rng.Below(shape.most_layers));
  std::vector<std::vector<Bytes>> sizes(layers);
  const Bytes each(1 + rng.Below(7));
  std::uint64_t total = 0;
  const std::uint64_t alike = rng.Below(2);  // layers of as many experts each, or not
  const std::uint64_t first_count = 2 + rng.Below(shape.most_experts - 1);
  for (auto& layer : sizes) {
    const std::uint64_t count = alike == 1 ? first_count : 2 + rng.Below(shape.most_experts - 1);
    for (std::uint64_t e = 0; e < count; ++e) {
      layer.push_back(shape.equal_sizes ? each : Bytes(1 + rng.Below(5)));
      total += layer.back().count();
    }
  }
  problem.experts = ExpertTable(sizes);
  problem.experts_per_token = 1 + static_cast<std::uint32_t>(rng.Below(2));
  problem.links.usual = {.latency_seconds = 0.0005, .bytes_per_second = 1e7};
  const auto servers = 1 + static_cast<std::uint32_t>(rng.Below(shape.most_servers));
  for (std::uint32_t n = 0; n < servers; ++n) {
    PlacementServer server{.name = fmt::format("server {}", n)};
    server.devices.resize(1 + rng.Below(3));
    for (PlacementDevice& device : server.devices) {
      device.speed = 1 + static_cast<double>(rng.Below(3));
      device.load_bytes_per_second = 100;
    }
    for (ExpertIndex e = 0; e < problem.experts.size(); ++e) {
      const double f = std::floor(std::exp(6 * rng.Uniform())) - 1;
      server.activations.push_back(rng.Below(8) == 0 ? 0 : f);
    }
    problem.servers.push_back(std::move(server));
  }
  const double least = shape.equal_sizes ? 1.0 : 1.5;
  const double times = least + rng.Uniform() * (shape.most_memory - least);
  const auto wanted = static_cast<std::uint64_t>(times * static_cast<double>(total));
  const std::uint64_t step = shape.equal_sizes ? each.count() : 25;
  std::uint64_t given = 0;
  while (given < wanted) {  // devices of very different sizes
    auto& devices = problem.servers[rng.Below(servers)].devices;
    devices[rng.Below(devices.size())].memory += step;
    given += step;
  }
  if (rng.Below(2) == 0) {  // memory that no expert fills
    for (auto& server : problem.servers) {
      for (auto& device : server.devices) device.memory += each.count() - 1;
    }
  }
  return problem;
}

}  // namespace troupe
