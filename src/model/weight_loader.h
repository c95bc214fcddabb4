// Brings a model's tensors from its GGUF into memory as panels: checks that every tensor the
// configuration calls for is there with the right shape, and that the file has none the engine
// would leave out of its sums; then reads and packs them on all threads, each byte once, without
// keeping the file's own form beside the packed one.
#pragma once

#include "base/bytes.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "gguf/reader.h"
#include "model/byte_progress.h"
#include "model/config.h"
#include "model/weights.h"

namespace troupe {

// The memory they will take, without reading any of them.
Result<Bytes> MeasureWeights(const GgufModel& file, const ModelConfig& config);

Result<WeightStore> LoadWeights(const GgufModel& file, const ModelConfig& config, ThreadPool& pool,
                                const ByteProgress& progress = {});

}  // namespace troupe
