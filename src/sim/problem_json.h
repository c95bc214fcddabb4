// Placement problems and placements as JSON (docs/formats/placement.md).
#pragma once

#include <string>
#include <string_view>

#include "base/json_value.h"
#include "placement/placement.h"
#include "placement/problem.h"

namespace troupe {

// Parsed and validated; `name` is for errors.
Result<PlacementProblem> ParseProblem(const std::string& name, std::string_view text);
Json ToJson(const PlacementProblem& problem);

Result<Placement> ParsePlacement(const std::string& name, std::string_view text,
                                 const PlacementProblem& problem);
Json ToJson(const PlacementProblem& problem, const Placement& placement);

// The parts that scenarios have as well. Each is a part of a reader (json_value.h).
void ReadModel(const JsonValue& json, PlacementProblem& problem);
// Servers without their activations; "count" makes several alike.
void ReadServers(const JsonValue& json, PlacementProblem& problem);
LinkTable ReadLinks(const JsonValue& json, const PlacementProblem& problem);
// By name, or by number if it is one.
std::uint32_t ReadServerName(const JsonValue& json, const PlacementProblem& problem);

}  // namespace troupe
