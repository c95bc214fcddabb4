#include "forge/repart.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "forge/model_output.h"
#include "forge/rewrite.h"

namespace troupe {
namespace {

constexpr std::uint64_t kPartCopyBytes = 4 << 20;

}  // namespace

Result<RepartReport> Repart(const GgufModel& model, const std::string& path, Bytes part_bytes,
                            const ByteProgress& progress) {
  if (model.tensors().empty()) return InvalidArgument("{}: a model without tensors", model.path());
  const std::vector<TensorSpec> specs(model.tensors().begin(), model.tensors().end());
  TROUPE_ASSIGN_OR_RETURN(ModelOutput output,
                          ModelOutput::Create(path, MetadataAsOneFile(model), specs, part_bytes));
  for (const std::string& file : output.files()) {
    TROUPE_RETURN_IF_ERROR(CheckNotInPlace(model, file));
  }
  std::vector<std::byte> buffer(kPartCopyBytes);
  Bytes done;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const TensorInfo& tensor = model.tensors()[i];
    const std::uint64_t size = tensor.bytes.count();
    for (std::uint64_t at = 0; at < size; at += kPartCopyBytes) {
      const auto piece = std::span(buffer).first(std::min(kPartCopyBytes, size - at));
      TROUPE_RETURN_IF_ERROR(model.ReadRange(tensor, at, piece));
      TROUPE_RETURN_IF_ERROR(output.Append(i, piece));
      done += Bytes(piece.size());
      TROUPE_RETURN_IF_ERROR(Report(progress, done, model.tensor_bytes()));
    }
  }
  TROUPE_RETURN_IF_ERROR(output.Finish());
  return RepartReport{.files = output.files(), .bytes = output.total_bytes()};
}

}  // namespace troupe
