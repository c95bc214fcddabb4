#include "forge/widen_stream.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "forge/rewrite.h"
#include "gguf/writer.h"
#include "model/config.h"

namespace troupe {
namespace {

enum class Part {
  kOther,   // has no dimension of the stream's width
  kNorm,    // one weight an element: scaled, then zeros
  kReads,   // rows as long as the stream
  kWrites,  // as many rows as the stream has elements
};

Part PartOf(std::string_view name) {
  const auto ends = [name](std::string_view end) { return name.ends_with(end); };
  if (!ends(".weight")) return Part::kOther;
  if (ends("attn_norm.weight") || ends("ffn_norm.weight") || ends("output_norm.weight")) {
    return Part::kNorm;
  }
  if (ends("attn_output.weight") || name.find(".ffn_down") != std::string_view::npos) {
    return Part::kWrites;
  }
  return Part::kReads;
}

class StreamWidening {
 public:
  StreamWidening(const GgufModel& model, std::uint32_t factor, std::uint32_t width)
      : model_(model), factor_(factor), width_(width) {}

  Status CheckTensors() const {
    for (const TensorInfo& tensor : model_.tensors()) {
      const Part part = PartOf(tensor.name);
      const std::uint64_t found = tensor.dims[part == Part::kWrites ? 1 : 0];
      if (part != Part::kOther && found != width_) {
        return InvalidArgument("{}: tensor '{}' has {} where the stream's width of {} was expected",
                               model_.path(), tensor.name, found, width_);
      }
      if (part == Part::kNorm && tensor.type != TensorType::kF32) {
        return InvalidArgument("{}: tensor '{}' is {}, expected F32", model_.path(), tensor.name,
                               Name(tensor.type));
      }
    }
    return OkStatus();
  }

  TensorSpec SpecOf(const TensorInfo& tensor) const {
    TensorSpec spec = tensor;
    const Part part = PartOf(tensor.name);
    if (part == Part::kWrites) spec.dims[1] *= factor_;
    if (part == Part::kNorm || part == Part::kReads) spec.dims[0] *= factor_;
    return spec;
  }

  Status Write(const TensorInfo& tensor, GgufWriter& writer) const {
    const Part part = PartOf(tensor.name);
    std::uint64_t run = RowBytes(tensor.type, tensor.dims[0]).count();
    if (part == Part::kWrites) run *= tensor.dims[1];
    const std::uint64_t gap = part == Part::kOther ? 0 : run * (factor_ - 1);
    std::vector<std::byte> bytes(run + gap);  // zero bytes are zero weights in every type
    for (std::uint64_t at = 0; at < tensor.bytes.count(); at += run) {
      TROUPE_RETURN_IF_ERROR(model_.ReadRange(tensor, at, std::span(bytes).first(run)));
      if (part == Part::kNorm) Scale(std::span(bytes).first(run));
      TROUPE_RETURN_IF_ERROR(writer.Append(tensor.name, bytes));
    }
    return OkStatus();
  }

 private:
  // The root of the mean square is 1 / sqrt(factor) of what it was.
  void Scale(std::span<std::byte> weights) const {
    const float scale = 1.0f / static_cast<float>(1u << (std::countr_zero(factor_) / 2));
    for (std::size_t at = 0; at < weights.size(); at += sizeof(float)) {
      float weight = 0;
      std::memcpy(&weight, weights.data() + at, sizeof weight);
      weight *= scale;
      std::memcpy(weights.data() + at, &weight, sizeof weight);
    }
  }

  const GgufModel& model_;
  std::uint32_t factor_, width_;
};

}  // namespace

Result<Bytes> WidenStream(const GgufModel& model, std::uint32_t factor, const std::string& path,
                          const ByteProgress& progress) {
  if (!std::has_single_bit(factor) || std::countr_zero(factor) % 2 != 0) {
    return InvalidArgument("a stream {} times as wide, expected 4, 16, 64 or so", factor);
  }
  TROUPE_RETURN_IF_ERROR(CheckNotInPlace(model, path));
  TROUPE_ASSIGN_OR_RETURN(const ModelConfig config, ReadModelConfig(model.metadata()));
  if (config.architecture != Architecture::kQwen2Moe) {
    return InvalidArgument("{}: a {} model; only a qwen2moe's stream can be widened", model.path(),
                           Name(config.architecture));
  }
  const StreamWidening widening(model, factor, config.width);
  TROUPE_RETURN_IF_ERROR(widening.CheckTensors());

  Metadata metadata = MetadataAsOneFile(model);
  const std::string prefix(Name(config.architecture));
  metadata.Set(prefix + ".embedding_length", std::uint32_t{config.width * factor});
  // Heads are a share of the stream unless they say that they are not.
  metadata.Set(prefix + ".attention.key_length", std::uint32_t{config.attention.key_dim});
  metadata.Set(prefix + ".attention.value_length", std::uint32_t{config.attention.value_dim});
  metadata.Set(prefix + ".attention.layer_norm_rms_epsilon",
               config.norm_epsilon / static_cast<float>(factor));
  std::vector<TensorSpec> specs;
  for (const TensorInfo& tensor : model.tensors()) specs.push_back(widening.SpecOf(tensor));
  TROUPE_ASSIGN_OR_RETURN(GgufWriter writer, GgufWriter::Create(path, metadata, specs));
  Bytes done;
  for (const TensorInfo& tensor : model.tensors()) {
    TROUPE_RETURN_IF_ERROR(widening.Write(tensor, writer));
    done += tensor.bytes;
    TROUPE_RETURN_IF_ERROR(Report(progress, done, model.tensor_bytes()));
  }
  TROUPE_RETURN_IF_ERROR(writer.Finish());
  return writer.total_bytes();
}

}  // namespace troupe
