// Packs a model's routed experts into a container (store/container_format.h): each in one piece, as
// a slot of memory holds it, so that loading one is a single aligned read. With a second type all
// of them once more at lower precision.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/status.h"
#include "base/tensor_type.h"
#include "gguf/reader.h"
#include "model/byte_progress.h"
#include "quant/quantize.h"
#include "store/container_writer.h"

namespace troupe {

struct PackOptions {
  std::size_t threads = 1;  // the bytes are the same for any number
  // Of the second copy; where rows do not fit it the nearest type that they fit (tensor_mix.h).
  std::optional<TensorType> low = std::nullopt;
  // What the second copy is made from, if not from the packed model itself: the weights that one
  // was made from, so that errors do not add up. Must outlive the call.
  const GgufModel* low_from = nullptr;
  Rounding rounding = Rounding::kBest;  // of the second copy
  ByteProgress progress = nullptr;      // counts bytes read
};

struct PackReport {
  Bytes bytes = {};             // of the file written
  std::uint32_t layers = 0;     // that have experts
  std::uint32_t experts = 0;    // a layer
  Bytes full = {};              // in use by the experts as the model has them
  Bytes low = {};               // in use by the second copy
  std::uint32_t fallbacks = 0;  // matrices of a layer in another type than `low`
};

// What a second copy in `low` has of a matrix that is in `type`: the nearest type that its rows
// fit, or `type` where that is no smaller.
TensorType LowTypeFor(TensorType type, std::uint64_t cols, TensorType low);

// A container that is written but for its name.
struct UnpublishedContainer {
  ContainerWriter writer;
  PackReport report;
};

// Needs memory for a few experts. Refuses a model without experts, to write over a file it reads, a
// second copy that is no smaller than the first, and one made from weights of other shapes.
Result<UnpublishedContainer> PackModelUnpublished(const GgufModel& model,
                                                  const PackOptions& options,
                                                  const std::string& path);

// The same, with its name.
Result<PackReport> PackModel(const GgufModel& model, const PackOptions& options,
                             const std::string& path);

}  // namespace troupe
