// What /metrics tells of the model: its requests, tokens, drafts and caches, its experts, and how
// its memory is divided.
#pragma once

#include <troupe/model.h>

#include <cstddef>

#include "server/metric_families.h"

namespace troupe {

// `parked`: requests that wait for the next model.
void AddModelMetrics(const Metrics& model, const Plan& plan, std::size_t parked,
                     MetricFamilies& families);

}  // namespace troupe
