// Brings a model's tensors from its GGUF into memory as panels: checks that every tensor the
// configuration calls for is there with the right shape, and that the file has none the engine
// would leave out of its sums; then reads and packs them on all threads, each byte once, without
// keeping the file's own form beside the packed one. Routed experts may be left where they are.
// Every matrix of which something was recorded is compared as it is loaded.
#pragma once

#include "base/bytes.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "gguf/reader.h"
#include "model/byte_progress.h"
#include "model/config.h"
#include "model/expert_layout.h"
#include "model/weight_binder.h"
#include "model/weight_checks.h"
#include "model/weights.h"

namespace troupe {

struct WeightMeasure {
  WeightBytes bytes;      // as they will lie in memory, all of them
  ExpertLayouts experts;  // points into the file's tensor table
};

// What they will take, without reading any of them: the whole model's, or those of some layers.
Result<WeightMeasure> MeasureWeights(const GgufModel& file, const ModelConfig& config);
Result<WeightMeasure> MeasureWeights(const GgufModel& file, const ModelConfig& config,
                                     LayerRange layers);

Result<WeightStore> LoadWeights(const GgufModel& file, const ModelConfig& config, LayerRange layers,
                                RoutedExperts experts, ThreadPool& pool,
                                const ByteProgress& progress = {},
                                const WeightChecks* checks = nullptr);

}  // namespace troupe
