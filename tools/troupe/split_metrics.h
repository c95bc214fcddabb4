// What /metrics tells of an end and its cloud.
#pragma once

#include <vector>

#include "server/extra_metric.h"
#include "split/end_answers.h"

namespace troupe {

std::vector<ExtraMetric> MetricsOf(const EndState& state);

}  // namespace troupe
