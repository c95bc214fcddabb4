// The interface of everything that decides where experts live, one file an implementation. Pure:
// the problem in, a placement out, the same one for the same problem and options.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "placement/latency_model.h"
#include "placement/placement.h"
#include "placement/problem.h"

namespace troupe {

class Placer {
 public:
  virtual ~Placer() = default;
  virtual std::string_view Name() const = 0;
  // The problem has passed Validate. The placement passes Validate, too.
  virtual Result<Placement> Place(const PlacementProblem& problem) const = 0;
};

struct PlacerOptions {
  std::uint64_t seed = 1;  // of those that draw at random
  LatencyModel latency;    // what `latency` minimises
};

// dancemoe, uniform, redundance, smartmoe, eplb, optimum, latency.
std::span<const std::string_view> PlacerNames();
Result<std::unique_ptr<Placer>> MakePlacer(std::string_view name, const PlacerOptions& options);

// One a file.
std::unique_ptr<Placer> MakeDanceMoe();
std::unique_ptr<Placer> MakeUniform(std::uint64_t seed);
std::unique_ptr<Placer> MakeRedundance(std::uint64_t seed);
std::unique_ptr<Placer> MakeSmartMoe();
std::unique_ptr<Placer> MakeEplb();
std::unique_ptr<Placer> MakeOptimumPlacer();
std::unique_ptr<Placer> MakeLatencySearch(const LatencyModel& model);

}  // namespace troupe
