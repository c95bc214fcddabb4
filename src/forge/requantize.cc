#include "forge/requantize.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "base/first_error.h"
#include "base/thread_pool.h"
#include "forge/rewrite.h"
#include "quant/convert_row.h"

namespace troupe {
namespace {

constexpr std::uint64_t kConvertedAtOnce = 16 * 1024;
constexpr std::uint64_t kTasksPerRead = 64;
constexpr std::uint64_t kCopyBytes = 4 << 20;

class Requantizer {
 public:
  Requantizer(const GgufModel& model, const RequantizeOptions& options, GgufWriter& writer)
      : model_(model), options_(options), writer_(writer), threads_(options.threads) {}

  Status Copy(const TensorInfo& tensor);
  Status Convert(const TensorInfo& tensor, TensorType type);

 private:
  Status Emit(const TensorInfo& tensor, std::span<const std::byte> bytes, std::uint64_t read);

  const GgufModel& model_;
  const RequantizeOptions& options_;
  GgufWriter& writer_;
  ThreadPool threads_;
  Bytes done_;
};

Status Requantizer::Emit(const TensorInfo& tensor, std::span<const std::byte> bytes,
                         std::uint64_t read) {
  done_ += Bytes(read);
  TROUPE_RETURN_IF_ERROR(Report(options_.progress, done_, model_.tensor_bytes()));
  return writer_.Append(tensor.name, bytes);
}

Status Requantizer::Copy(const TensorInfo& tensor) {
  std::vector<std::byte> buffer(std::min(kCopyBytes, tensor.bytes.count()));
  for (std::uint64_t at = 0; at < tensor.bytes.count(); at += buffer.size()) {
    const auto part =
        std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), tensor.bytes.count() - at));
    TROUPE_RETURN_IF_ERROR(model_.ReadRange(tensor, at, part));
    TROUPE_RETURN_IF_ERROR(Emit(tensor, part, part.size()));
  }
  return OkStatus();
}

Status Requantizer::Convert(const TensorInfo& tensor, TensorType type) {
  const std::uint64_t columns = tensor.dims[0];
  const std::uint64_t rows = tensor.ElementCount() / columns;
  const std::uint64_t in_bytes = RowBytes(tensor.type, columns).count();
  const std::uint64_t out_bytes = RowBytes(type, columns).count();
  const std::uint64_t rows_per_task = std::max<std::uint64_t>(1, kConvertedAtOnce / columns);
  const std::uint64_t rows_per_chunk = std::min(rows, rows_per_task * kTasksPerRead);

  std::vector<std::byte> in(rows_per_chunk * in_bytes), out(rows_per_chunk * out_bytes);
  std::vector<float> floats(threads_.threads() * columns);
  const auto what = [&](std::uint64_t row) {
    return fmt::format("{}: tensor '{}', row {}", model_.files()[tensor.file].path(), tensor.name,
                       row);
  };
  for (std::uint64_t first = 0; first < rows; first += rows_per_chunk) {
    const std::uint64_t count = std::min(rows_per_chunk, rows - first);
    TROUPE_RETURN_IF_ERROR(
        model_.ReadRange(tensor, first * in_bytes, std::span(in).first(count * in_bytes)));
    FirstError error;
    threads_.Run((count + rows_per_task - 1) / rows_per_task, [&](std::size_t task,
                                                                  std::size_t thread) {
      const std::span row(floats.data() + thread * columns, columns);
      const std::uint64_t end = std::min(count, (task + 1) * rows_per_task);
      for (std::uint64_t r = task * rows_per_task; r < end; ++r) {
        error.Note(first + r,
                   ConvertRow(tensor.type, std::span(in).subspan(r * in_bytes, in_bytes), type,
                              options_.rounding, std::span(out).subspan(r * out_bytes, out_bytes),
                              row, what(first + r)));
      }
    });
    TROUPE_RETURN_IF_ERROR(error.Take());
    TROUPE_RETURN_IF_ERROR(Emit(tensor, std::span(out).first(count * out_bytes), count * in_bytes));
  }
  return OkStatus();
}

Metadata MetadataFor(const GgufModel& model, TensorType type) {
  Metadata metadata = MetadataAsOneFile(model);
  metadata.Set("general.file_type", FileTypeNumber(type));
  metadata.Set("general.quantization_version", std::uint32_t{2});
  return metadata;
}

}  // namespace

Result<UnpublishedModel> RequantizeUnpublished(const GgufModel& model,
                                               const RequantizeOptions& options,
                                               const std::string& path) {
  TROUPE_RETURN_IF_ERROR(CheckNotInPlace(model, path));
  std::vector<TensorSpec> specs;
  RequantizeReport report;
  for (const TensorInfo& tensor : model.tensors()) {
    TensorSpec spec = tensor;
    const bool wanted = IsQuantizable(spec) && (!options.experts_only || IsExpertMatrix(spec));
    if (wanted) spec.type = options.mix.TypeFor(spec);
    if (spec.type == tensor.type) {
      ++report.kept;
    } else {
      ++report.converted;
    }
    if (wanted && spec.type != options.mix.WantedFor(spec)) ++report.fallbacks;
    specs.push_back(std::move(spec));
  }
  TROUPE_ASSIGN_OR_RETURN(GgufWriter writer,
                          GgufWriter::Create(path, MetadataFor(model, options.mix.type), specs));
  Requantizer requantizer(model, options, writer);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const TensorInfo& tensor = model.tensors()[i];
    TROUPE_RETURN_IF_ERROR(specs[i].type == tensor.type
                               ? requantizer.Copy(tensor)
                               : requantizer.Convert(tensor, specs[i].type));
  }
  report.bytes = writer.total_bytes();
  return UnpublishedModel{std::move(writer), report};
}

Result<RequantizeReport> Requantize(const GgufModel& model, const RequantizeOptions& options,
                                    const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(UnpublishedModel made, RequantizeUnpublished(model, options, path));
  TROUPE_RETURN_IF_ERROR(made.writer.Finish());
  return made.report;
}

}  // namespace troupe
