// `troupe inspect --verify`: compares every byte of a model with what was recorded of it: by
// `troupe pack` in MODEL.checksums.json and in the container, by `troupe pull` of its files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "gguf/reader.h"

namespace troupe {

// The checksums that `troupe pack` writes beside a container.
std::string ChecksumsPathFor(const std::string& container);
// kDataLoss if a few tensors are not what was recorded of them there: to record them anew would
// call damage right. Nothing is wrong where nothing was recorded, or of another model.
Status RefuseDamaged(const GgufModel& model, std::size_t threads, const std::string& path);
// Reads all of the model, with a progress bar.
Status WriteChecksums(const GgufModel& model, std::size_t threads, const std::string& path);

struct VerifyReport {
  std::string model;
  std::uint64_t tensors = 0;  // compared with checksums, or looked at without them
  std::uint64_t experts = 0;  // of the container
  std::uint64_t pulled_files = 0;
  bool has_checksums = false;        // of the tensors
  std::vector<std::string> damaged;  // a line each
  bool model_is_whole = false;       // all of them are packed experts

  bool proven() const { return has_checksums || pulled_files > 0; }
};

// `container` need not exist. An error: something cannot be read at all.
Result<VerifyReport> VerifyModel(const GgufModel& model, const std::string& container,
                                 std::size_t threads);
void Print(const VerifyReport& report);
Json ToJson(const VerifyReport& report);
// kDataLoss if anything is damaged.
Status OutcomeOf(const VerifyReport& report);

}  // namespace troupe
