// What a model file holds and what running it takes, in figures: bytes by type, by layer and by
// role, what one token reads, what the context costs. From metadata and tensor table alone, without
// reading a weight; `troupe inspect` prints it.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "base/tensor_type.h"
#include "gguf/reader.h"
#include "kernels/kv_layout.h"
#include "model/config.h"

namespace troupe {

struct TypeShare {
  TensorType type = TensorType::kF32;
  std::uint32_t tensors = 0;
  Bytes bytes = {};
};

struct LayerBytes {
  Bytes attention;  // or a delta net
  Bytes dense;      // feed-forward without experts, or the shared expert
  Bytes router;     // with its bias and the shared expert's gate
  Bytes experts;    // all of the layer's
  Bytes norms;

  Bytes Total() const { return attention + dense + router + experts + norms; }
  bool operator==(const LayerBytes&) const = default;
};

struct ModelFacts {
  ModelConfig config;
  Bytes file;
  std::uint64_t weights = 0;
  std::vector<TypeShare> types;
  std::vector<LayerBytes> layers;
  Bytes embedding;
  Bytes output;  // with its norm; 0 beyond the norm if the embedding is the output, too
  bool tied_output = false;
  Bytes left_out;  // layers that guess further tokens

  Bytes Dense() const;          // everything that is not a routed expert
  Bytes Experts() const;        // the routed experts of all layers
  Bytes LargestExpert() const;  // of any layer
  // Weights that one token of an answer reads: no table row but its own.
  Bytes TouchedPerToken() const;
  Bytes KvPerToken(KvType type) const;
  Bytes StatePerSequence() const;  // besides keys and values, however long it is
};

Result<ModelFacts> InspectModel(const GgufModel& model);

}  // namespace troupe
