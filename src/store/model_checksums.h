// Checksums of every tensor of a model, of each expert's matrix by itself, and of what lies between
// them: what `troupe pack` writes down beside the model (docs/formats/checksums.md) and `troupe
// inspect --verify` compares. The fingerprint (model_fingerprint.h) sees samples; these see every
// byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "gguf/reader.h"

namespace troupe {

struct TensorChecksums {
  std::string name;
  std::vector<std::uint64_t> matrices;  // one, or one an expert

  bool operator==(const TensorChecksums&) const = default;
};

struct ModelChecksums {
  std::vector<std::uint64_t> between;  // of each file: header, names, padding
  std::vector<TensorChecksums> tensors;

  bool operator==(const ModelChecksums&) const = default;
};

// Reads all of the model once. `go_on` gets bytes read, from the caller's thread; its no ends with
// kCancelled. The values are the same for any number of threads.
Result<ModelChecksums> SumModel(const GgufModel& model, std::size_t threads,
                                const std::function<bool(Bytes done, Bytes total)>& go_on = {});

// A line for each thing that differs: "tensor 'blk.3.ffn_up_exps.weight': expert 5 of 64".
std::vector<std::string> DamagedParts(const ModelChecksums& recorded, const ModelChecksums& found);

std::string ChecksumsText(const ModelChecksums& checksums);
Result<ModelChecksums> ParseChecksums(const std::string& name, std::string_view text);

}  // namespace troupe
