// Pictures of where experts live on a cluster, and of how clusters serve that placed them in
// different ways.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "placement/placement.h"
#include "placement/problem.h"
#include "placement/remote_calls.h"
#include "sim/result.h"

namespace troupe {

// What one method of placing made of a problem.
struct PlacedExperts {
  std::string method;
  Placement placement;
  double seconds = 0;  // that placing took
  RemoteCalls calls;
  std::optional<double> pass_seconds;  // if the costs are known
};

// The same while users ask.
struct SimulatedMethod {
  std::string method;
  SimulationResult result;
};

// An .svg shows which share of calls stays local; an .html also what each server holds and lacks
// under the last of the methods.
std::string PlotPlaced(const PlacementProblem& problem, std::span<const PlacedExperts> placed,
                       const std::string& file);

// An .svg shows latency over time; an .html also local calls over time, and both by server.
std::string PlotSimulated(const PlacementProblem& problem, std::span<const SimulatedMethod> runs,
                          const std::string& title, const std::string& file);

}  // namespace troupe
