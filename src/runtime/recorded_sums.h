// The checksums that `troupe pack` wrote beside a model, held against its weights while they are
// loaded, and against experts that are read in place (checked_experts.h). Experts that are read
// from a container have sums there (store/container_store.h).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "gguf/reader.h"
#include "model/weight_checks.h"

namespace troupe {

// "m.gguf" gives "m.checksums.json".
std::string ChecksumsPathBeside(std::string_view model_path);

class RecordedSums final : public WeightChecks {
 public:
  // Nothing where there are none. Sums that cannot be read, or are of another model's tensors, are
  // said in the log and compare nothing.
  static std::unique_ptr<RecordedSums> Beside(const GgufModel& model);

  // What sums beside the model will take in memory, without reading them; nothing if there are
  // none.
  static Bytes BytesBeside(const GgufModel& model);

  std::unique_ptr<MatrixCheck> Begin(const TensorInfo& tensor, std::uint64_t matrix) const override;

 private:
  RecordedSums(const GgufModel& model, std::string path);

  std::vector<std::string> files_;  // of the model
  std::string path_;
  std::map<std::string, std::vector<std::uint64_t>, std::less<>> sums_;  // by tensor
};

}  // namespace troupe
