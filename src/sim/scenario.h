// A simulation as a JSON file (docs/formats/placement.md): cluster, model, users, traces, costs,
// how experts are placed and moved. Reads the files that it names, and places the experts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "sim/simulation.h"

namespace troupe {

struct ScenarioOptions {
  std::string data_folder;  // that traces are named in; empty: the scenario's own
  std::optional<std::string> method;
  std::optional<std::uint64_t> seed;
  std::vector<std::string> set;  // "/servers/0/count=64": a JSON pointer and a JSON value
};

struct Scenario {
  std::string name;
  std::string method;     // of the placement
  PlacerOptions options;  // of its placer, with the latency model of these users
  SimulationSetup setup;  // without a placement
};

Result<Scenario> LoadScenario(const std::string& path, const ScenarioOptions& options);

// Makes the placement that the scenario begins with; then the setup can be simulated.
Status PlaceExperts(Scenario& scenario);

// Costs as a scenario or a file of measurements has them.
Result<ServingCosts> ReadCostsFile(const std::string& path);

// Without anything that differs from run to run.
Json ToJson(const Scenario& scenario, const SimulationResult& result);

}  // namespace troupe
