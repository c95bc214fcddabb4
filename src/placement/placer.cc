#include "placement/placer.h"

#include <fmt/format.h>

namespace troupe {
namespace {

constexpr std::string_view kNames[] = {"uniform",  "redundance", "smartmoe", "eplb",
                                       "dancemoe", "optimum",    "latency"};

}  // namespace

std::span<const std::string_view> PlacerNames() { return kNames; }

Result<std::unique_ptr<Placer>> MakePlacer(std::string_view name, const PlacerOptions& options) {
  if (name == "uniform") return MakeUniform(options.seed);
  if (name == "redundance") return MakeRedundance(options.seed);
  if (name == "smartmoe") return MakeSmartMoe();
  if (name == "eplb") return MakeEplb();
  if (name == "dancemoe") return MakeDanceMoe();
  if (name == "optimum") return MakeOptimumPlacer();
  if (name == "latency") return MakeLatencySearch(options.latency);
  return InvalidArgument("there is no placement '{}'; there are {}", name, fmt::join(kNames, ", "));
}

}  // namespace troupe
