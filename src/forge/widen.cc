#include "forge/widen.h"

#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "forge/rewrite.h"
#include "gguf/writer.h"
#include "model/config.h"

namespace troupe {
namespace {

enum class Growth {
  kNone,
  kRows,     // gate and up: more outputs per expert
  kColumns,  // down: more inputs; biases of gate and up
};

class Widening {
 public:
  static Result<Widening> Of(const GgufModel& model, std::uint32_t factor);

  const Metadata& metadata() const { return metadata_; }

  Growth GrowthOf(std::string_view name) const {
    const bool grows = name.find("_exps.weight") != std::string_view::npos ||
                       (shared_too_ && name.find("_shexp.weight") != std::string_view::npos);
    if (name.ends_with("ffn_gate_exps.bias") || name.ends_with("ffn_up_exps.bias")) {
      return Growth::kColumns;
    }
    if (!grows) return Growth::kNone;
    if (name.find(".ffn_down_") != std::string_view::npos) return Growth::kColumns;
    return name.find(".ffn_gate_inp") == std::string_view::npos ? Growth::kRows : Growth::kNone;
  }

 private:
  Metadata metadata_;
  bool shared_too_ = false;
};

Result<Widening> Widening::Of(const GgufModel& model, std::uint32_t factor) {
  TROUPE_ASSIGN_OR_RETURN(const ModelConfig config, ReadModelConfig(model.metadata()));
  if (config.moe.routing.experts == 0) {
    return InvalidArgument("{}: it has no experts to widen", model.path());
  }
  for (const TensorInfo& tensor : model.tensors()) {
    if (!std::string_view(tensor.name).ends_with("ffn_gate_up_exps.weight")) continue;
    return Error(Code::kUnimplemented,
                 "{}: tensor '{}' holds two matrices, expected one for the gate and one for up",
                 model.path(), tensor.name);
  }
  Widening widening;
  Metadata& metadata = widening.metadata_ = MetadataAsOneFile(model);

  const std::string prefix(Name(config.architecture));
  const std::string expert_key = prefix + ".expert_feed_forward_length";
  const std::uint32_t ff = config.moe.expert_ff * factor;
  // Mixtral and OLMoE have their experts' width under the dense key, as no layer of theirs is
  // dense.
  const bool under_dense_key =
      config.architecture == Architecture::kLlama || config.architecture == Architecture::kOlmoe;
  if (under_dense_key) metadata.Set(prefix + ".feed_forward_length", ff);
  if (!under_dense_key || metadata.Find(expert_key) != nullptr) metadata.Set(expert_key, ff);

  TROUPE_ASSIGN_OR_RETURN(const ModelConfig widened, ReadModelConfig(metadata));
  TROUPE_CHECK(widened.moe.expert_ff == ff);
  widening.shared_too_ = widened.moe.shared_ff != config.moe.shared_ff;
  return widening;
}

// Copies the tensor in runs, each followed by `gap_bytes` zero bytes. Zero bytes are zero weights
// in every stored type.
Status CopyWithGaps(const GgufModel& model, const TensorInfo& tensor, std::uint64_t run_bytes,
                    std::uint64_t gap_bytes, GgufWriter& writer) {
  std::vector<std::byte> run(run_bytes + gap_bytes);
  for (std::uint64_t at = 0; at < tensor.bytes.count(); at += run_bytes) {
    TROUPE_RETURN_IF_ERROR(model.ReadRange(tensor, at, std::span(run).first(run_bytes)));
    TROUPE_RETURN_IF_ERROR(writer.Append(tensor.name, run));
  }
  return OkStatus();
}

}  // namespace

Result<Bytes> WidenExperts(const GgufModel& model, std::uint32_t factor, const std::string& path,
                           const ByteProgress& progress) {
  TROUPE_CHECK(factor > 0);
  TROUPE_RETURN_IF_ERROR(CheckNotInPlace(model, path));
  TROUPE_ASSIGN_OR_RETURN(const Widening widening, Widening::Of(model, factor));
  std::vector<TensorSpec> specs;
  for (const TensorInfo& tensor : model.tensors()) {
    TensorSpec spec = tensor;
    const Growth growth = widening.GrowthOf(spec.name);
    if (growth == Growth::kRows) spec.dims[1] *= factor;
    if (growth == Growth::kColumns) spec.dims[0] *= factor;
    specs.push_back(std::move(spec));
  }
  TROUPE_ASSIGN_OR_RETURN(GgufWriter writer, GgufWriter::Create(path, widening.metadata(), specs));
  Bytes done;
  for (const TensorInfo& tensor : model.tensors()) {
    const std::uint64_t row = RowBytes(tensor.type, tensor.dims[0]).count();
    std::uint64_t run = tensor.bytes.count() / tensor.dims[2];
    std::uint64_t gap = 0;
    const Growth growth = widening.GrowthOf(tensor.name);
    if (growth == Growth::kRows) gap = run * (factor - 1);
    if (growth == Growth::kColumns) {
      run = row;
      gap = row * (factor - 1);
    }
    TROUPE_RETURN_IF_ERROR(CopyWithGaps(model, tensor, run, gap, writer));
    done += tensor.bytes;
    TROUPE_RETURN_IF_ERROR(Report(progress, done, model.tensor_bytes()));
  }
  TROUPE_RETURN_IF_ERROR(writer.Finish());
  return writer.total_bytes();
}

}  // namespace troupe
