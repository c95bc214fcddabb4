// What /metrics tells of an end and its cloud.
#pragma once

#include <vector>

#include "server/cut_host.h"
#include "server/extra_metric.h"
#include "split/end_answers.h"

namespace troupe {

std::vector<ExtraMetric> MetricsOf(const EndState& state);
// Of a cloud: prompts that ends have cut, as its lane of layers counts them, and what became of
// those with longer answers.
std::vector<ExtraMetric> MetricsOf(const PartCounters& counters, const CutHost::WentOn& went_on);

}  // namespace troupe
