// Brings the state of a sequence behind the first rows of its last pass, where the pass has gone on
// to more: guessed tokens of which some were wrong. The pass has kept what each row puts into the
// recurrences (StateKeeping), so nothing else of the layers is computed again: the convolutions and
// the steps of the heads, by the calls of the pass and so to its bytes. Keys and values stay.
#pragma once

#include <cstddef>

#include "base/thread_pool.h"
#include "model/config.h"
#include "model/kv_pool.h"
#include "model/layer_range.h"
#include "model/weights.h"

namespace troupe {

// The sequence then ends behind those rows. REQUIRES: the last pass over it has ended well, and has
// kept the inputs of more rows than that; rows > 0. Once a pass.
void ReplayFirstRows(const ModelConfig& config, const ModelWeights& weights, LayerRange layers,
                     ThreadPool& pool, std::size_t rows, KvSequence& sequence);

}  // namespace troupe
