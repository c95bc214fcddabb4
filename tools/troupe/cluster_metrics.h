// What /metrics tells of a node of a cluster.
#pragma once

#include <vector>

#include "cluster/face/running_node.h"
#include "server/extra_metric.h"

namespace troupe {

std::vector<ExtraMetric> MetricsOf(const ClusterState& state);

}  // namespace troupe
