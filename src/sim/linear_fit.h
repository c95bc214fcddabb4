// Fits the estimator's straight lines to measurements.
#pragma once

#include <span>

#include "base/status.h"
#include "placement/latency_model.h"

namespace troupe {

struct CostSample {
  double amount = 0;  // tokens or bytes
  double seconds = 0;
};

struct LinearFit {
  LinearCost cost;
  double worst_error = 0;  // of a sample, relative to it
};

// Least squares of relative errors, so that a token counts as much as a thousand; neither base nor
// slope below zero. At least one sample; one alone gives a slope of zero.
Result<LinearFit> FitLinearCost(std::span<const CostSample> samples);

}  // namespace troupe
