#include "forge/pack_pair.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <system_error>

#include "forge/rewrite.h"
#include "forge/tensor_mix.h"
#include "gguf/split.h"
#include "io/atomic_file.h"

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

bool SameFile(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return std::filesystem::weakly_canonical(a, ignored) ==
         std::filesystem::weakly_canonical(b, ignored);
}

// What can be known before hours of converting: that both files can be written, and that the second
// copy will be smaller.
Status CheckTargets(const GgufModel& original, const TensorMix& mix, std::optional<TensorType> low,
                    const std::string& model_path, const std::string& container_path) {
  TROUPE_RETURN_IF_ERROR(CheckNotInPlace(original, container_path));
  if (SameFile(model_path, container_path)) {
    return InvalidArgument("{}: the new model's name; another one expected for its container",
                           container_path);
  }
  TROUPE_RETURN_IF_ERROR(AtomicFileWriter::Create(container_path).status());
  Bytes high_bytes, low_bytes;
  for (const TensorInfo& tensor : original.tensors()) {
    if (!IsExpertMatrix(tensor)) continue;
    const std::uint64_t cols = tensor.dims[0], rows = tensor.ElementCount() / cols;
    const TensorType high = mix.TypeFor(tensor);
    high_bytes += Bytes(rows * RowBytes(high, cols).count());
    low_bytes += Bytes(rows * RowBytes(low ? LowTypeFor(high, cols, *low) : high, cols).count());
  }
  if (high_bytes == Bytes()) {
    return InvalidArgument("{}: a model without experts; there is nothing to pack",
                           original.path());
  }
  if (low && low_bytes >= high_bytes) {
    return InvalidArgument("{}: experts would take {} in {}, and {} in {}; a smaller type expected",
                           original.path(), ToString(low_bytes), Name(*low), ToString(high_bytes),
                           Name(mix.type));
  }
  return OkStatus();
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
  const TensorMix mix = {.type = high};
  TROUPE_RETURN_IF_ERROR(CheckTargets(original, mix, options.low, model_path, container_path));
  TROUPE_ASSIGN_OR_RETURN(UnpublishedModel made,
                          RequantizeUnpublished(original,
                                                {.mix = mix,
                                                 .experts_only = true,
                                                 .rounding = options.rounding,
                                                 .threads = options.threads,
                                                 .progress = options.progress},
                                                model_path));
  TROUPE_ASSIGN_OR_RETURN(const std::string nameless, made.writer.Seal());
  TROUPE_ASSIGN_OR_RETURN(const GgufModel model, GgufModel::Open(nameless));
  PackOptions pack = options;
  pack.low_from = &original;
  TROUPE_ASSIGN_OR_RETURN(UnpublishedContainer packed,
                          PackModelUnpublished(model, pack, container_path));
  TROUPE_RETURN_IF_ERROR(made.writer.Publish());
  TROUPE_RETURN_IF_ERROR(packed.writer.Publish());
  return PackPairReport{.model = made.report, .container = packed.report};
}

}  // namespace troupe
