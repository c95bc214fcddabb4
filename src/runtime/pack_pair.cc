#include "runtime/pack_pair.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>

#include "gguf/split.h"

namespace troupe {
namespace {

Status CheckSource(const GgufModel& model) {
  constexpr std::array kNearlyAsTrained = {TensorType::kF32, TensorType::kF16, TensorType::kBF16,
                                           TensorType::kQ8_0};
  for (const TensorInfo& tensor : model.tensors()) {
    if (!IsExpertMatrix(tensor) ||
        std::ranges::find(kNearlyAsTrained, tensor.type) != kNearlyAsTrained.end()) {
      continue;
    }
    return InvalidArgument(
        "{}: tensor '{}' is {}; two precisions are made from F32, F16, BF16 or Q8_0", model.path(),
        tensor.name, Name(tensor.type));
  }
  return OkStatus();
}

Result<PackReport> PackHigh(const GgufModel& original, const PackOptions& options,
                            const std::string& model_path, const std::string& container_path) {
  TROUPE_ASSIGN_OR_RETURN(const GgufModel high, GgufModel::Open(model_path));
  PackOptions pack = options;
  pack.low_from = &original;
  return PackModel(high, pack, container_path);
}

}  // namespace

std::string HighModelPathFor(std::string_view model_path, TensorType high) {
  constexpr std::string_view kModel = ".gguf";
  std::string stem(model_path);
  if (const std::optional<SplitName> name = ParseSplitName(model_path)) {
    stem = name->prefix;
  } else if (model_path.ends_with(kModel)) {
    stem.resize(stem.size() - kModel.size());
  }
  std::string type(Name(high));
  std::ranges::transform(type, type.begin(), [](unsigned char c) { return std::tolower(c); });
  return stem + "-" + type + std::string(kModel);
}

Result<PackPairReport> PackPair(const GgufModel& original, TensorType high,
                                const PackOptions& options, const std::string& model_path,
                                const std::string& container_path) {
  TROUPE_RETURN_IF_ERROR(CheckSource(original));
  PackPairReport report;
  TROUPE_ASSIGN_OR_RETURN(report.model, Requantize(original,
                                                   {.mix = {.type = high},
                                                    .experts_only = true,
                                                    .rounding = options.rounding,
                                                    .threads = options.threads,
                                                    .progress = options.progress},
                                                   model_path));
  Result<PackReport> packed = PackHigh(original, options, model_path, container_path);
  if (!packed.ok()) {
    std::error_code ignored;
    std::filesystem::remove(model_path, ignored);
    return packed.status();
  }
  report.container = *packed;
  return report;
}

}  // namespace troupe
