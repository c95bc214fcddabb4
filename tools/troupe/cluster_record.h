// What a node knows of its cluster as JSON: /cluster and /cluster/plan of `troupe serve`, which
// `troupe cluster` reads and shows (docs/formats/cluster-state.md).
#pragma once

#include <string>

#include "base/json.h"
#include "base/status.h"
#include "cluster/face/running_node.h"

namespace troupe {

Json RecordOf(const ClusterState& state);
Json RecordOf(const ClusterHoldings& holdings);

// For people: who is there and holds what, and what the node has asked and answered.
Result<std::string> ClusterTable(std::string_view name, std::string_view record);
// Layer by layer, which experts each node is to hold, and which of them it does.
Result<std::string> HoldingsTable(std::string_view name, std::string_view record);
// What has happened, oldest first.
Result<std::string> ClusterEvents(std::string_view name, std::string_view record);

}  // namespace troupe
