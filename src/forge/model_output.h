// The file or files a new model goes to: one GGUF, or parts named PATH-00001-of-00003.gguf whose
// tensors have a limit in bytes. All of them appear when Finish succeeds; none otherwise.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "gguf/metadata.h"
#include "gguf/tensor_info.h"
#include "gguf/writer.h"

namespace troupe {

class ModelOutput {
 public:
  // `split_bytes` 0: one file, called `path`.
  static Result<ModelOutput> Create(const std::string& path, const Metadata& metadata,
                                    std::span<const TensorSpec> tensors, Bytes split_bytes);

  // In the order of `tensors`, as GgufWriter has it.
  Status Append(std::size_t tensor, std::span<const std::byte> bytes);
  Status Finish();

  const std::vector<std::string>& files() const { return files_; }
  Bytes total_bytes() const;

 private:
  ModelOutput() = default;

  std::vector<TensorSpec> tensors_;
  std::vector<std::size_t> part_of_;  // a tensor's
  std::vector<std::string> files_;    // a part's
  std::vector<GgufWriter> writers_;   // a part's
};

}  // namespace troupe
