// Whether this program can be a node of a cluster. gRPC costs every command megabytes and
// milliseconds, so `troupe` has none of it: `troupe serve` as a node goes over to the program
// troupe-node beside it, which is the same but for that.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "cluster/face/running_node.h"

namespace troupe {

// Null in `troupe`. Each program has its own (node_opener_none.cc, node_opener_cluster.cc).
OpenNode NodeOpener();

// This process goes on as `troupe-node serve ARGUMENTS`; returns only if it cannot.
Status BecomeNodeProgram(const std::vector<std::string>& arguments);

}  // namespace troupe
