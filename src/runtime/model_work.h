// What one pass of a planned model reads and computes, in the terms of the speed estimate, and
// which shapes of experts must be measured for it.
#pragma once

#include <string>
#include <vector>

#include "expert/flow/miss_plan.h"
#include "expert/flow/speed_estimate.h"
#include "gguf/reader.h"
#include "model/expert_layout.h"
#include "runtime/plan_model.h"

namespace troupe {

// The cost model's key: types and sizes of gate, up and down.
std::string ShapeKey(const ExpertLayout& layout);

// What computing an expert of each layer takes, where all its layers' shapes were measured.
std::vector<LocalWork> LocalWorkOf(const ExpertLayouts& layouts, const CostModel& costs);

// One layout of each shape that the model's experts have; of a model without experts its first
// feed-forward.
std::vector<ExpertLayout> DistinctShapes(const GgufModel& file, const ExpertLayouts& layouts);

ModelWork WorkOf(const PlannedModel& model);

}  // namespace troupe
