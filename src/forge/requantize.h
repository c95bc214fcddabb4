// Converts a model's weights from the types they have to another, through floats, row by row; the
// rest of the file stays as it is. Which tensors are converted, and to what where rows do not fit,
// is tensor_mix.h's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/status.h"
#include "forge/tensor_mix.h"
#include "gguf/reader.h"
#include "gguf/writer.h"
#include "model/byte_progress.h"
#include "quant/quantize.h"

namespace troupe {

struct RequantizeOptions {
  TensorMix mix = {};
  bool experts_only = false;  // the other tensors stay as they are
  Rounding rounding = Rounding::kBest;
  std::size_t threads = 1;          // the bytes are the same for any number
  ByteProgress progress = nullptr;  // counts bytes of the input's tensors
};

struct RequantizeReport {
  Bytes bytes = {};             // of the file written
  std::uint32_t converted = 0;  // tensors that have a new type
  std::uint32_t kept = 0;       // tensors copied
  std::uint32_t fallbacks = 0;  // of the converted: in another type than asked for
};

// A model that is written but for Seal and Publish.
struct UnpublishedModel {
  GgufWriter writer;
  RequantizeReport report;
};

// A model of several parts becomes one file. Refuses to write over one of the files it reads.
Result<UnpublishedModel> RequantizeUnpublished(const GgufModel& model,
                                               const RequantizeOptions& options,
                                               const std::string& path);

// The same, with its name.
Result<RequantizeReport> Requantize(const GgufModel& model, const RequantizeOptions& options,
                                    const std::string& path);

}  // namespace troupe
