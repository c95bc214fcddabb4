// A model whose experts come in two precisions, from one in which they are stored almost as they
// were trained: a model file with the experts in the higher type, everything else as it was, and
// its container with both. The lower copy is made from the original weights too, so that it does
// not carry the errors of the higher one.
//
// The higher copy is a model of its own, and not only a part of the container, so that `exact`
// stays what it is: the answer of the model file, wherever its experts lie.
#pragma once

#include <string>

#include "base/status.h"
#include "base/tensor_type.h"
#include "forge/pack_model.h"
#include "forge/requantize.h"
#include "gguf/reader.h"

namespace troupe {

// "m.gguf" in Q4_K gives "m-q4_k.gguf".
std::string HighModelPathFor(std::string_view model_path, TensorType high);

struct PackPairReport {
  RequantizeReport model;  // its fallbacks: of the higher copy
  PackReport container;    // its: of the lower one
};

// Refuses experts that are already stored in fewer than eight bits. Both files get their names when
// both are complete and durable, the model first; until then what had those names before stays. A
// stop between the two leaves the new model, with which an older container is refused.
Result<PackPairReport> PackPair(const GgufModel& original, TensorType high,
                                const PackOptions& options, const std::string& model_path,
                                const std::string& container_path);

}  // namespace troupe
