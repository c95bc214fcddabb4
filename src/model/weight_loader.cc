#include "model/weight_loader.h"

#include <algorithm>
#include <atomic>

#include "base/mutex.h"
#include "kernels/elementwise.h"
#include "model/weight_binder.h"
#include "quant/dequantize.h"

namespace troupe {
namespace {

// Read and packed at once: large enough that the call costs nothing, small enough that the bytes
// are still in the second-level cache when they are packed.
constexpr std::uint64_t kPieceBytes = 512 << 10;

struct Piece {
  const LoadJob* job;
  std::size_t first_row;
  std::size_t rows;
};

std::vector<Piece> CutIntoPieces(const std::vector<LoadJob>& jobs) {
  std::vector<Piece> pieces;
  for (const LoadJob& job : jobs) {
    if (job.form != LoadJob::Form::kPanels) {
      pieces.push_back({&job, 0, job.rows});
      continue;
    }
    const std::uint64_t panel_bytes = kPanelRows * RowBytes(job.tensor->type, job.cols).count();
    const std::size_t step = std::max<std::uint64_t>(1, kPieceBytes / panel_bytes) * kPanelRows;
    for (std::size_t row = 0; row < job.rows; row += step) {
      pieces.push_back({&job, row, std::min(step, job.rows - row)});
    }
  }
  return pieces;
}

void WriteColumns(const LoadJob& job, std::span<const std::byte> rows, std::span<float> columns) {
  const std::uint64_t row_bytes = RowBytes(job.tensor->type, job.cols).count();
  std::vector<float> values(job.cols);
  for (std::size_t r = 0; r < job.rows; ++r) {
    DequantizeRow(job.tensor->type, rows.subspan(r * row_bytes, row_bytes), values);
    for (std::size_t c = 0; c < job.cols; ++c) columns[c * job.rows + r] = values[c];
  }
}

void StoreColumns(const Piece& piece, std::span<const std::byte> rows) {
  const LoadJob& job = *piece.job;
  WriteColumns(job, rows, {reinterpret_cast<float*>(job.target), job.rows * job.cols});
}

void Transpose(const Piece& piece, std::span<const std::byte> rows) {
  const LoadJob& job = *piece.job;
  std::vector<float> transposed(job.rows * job.cols);
  WriteColumns(job, rows, transposed);
  PackPanels(TensorType::kF32, job.cols, job.rows, std::as_bytes(std::span(transposed)),
             {job.target, PanelBytes(TensorType::kF32, job.cols, job.rows)});
}

Status LoadPiece(const GgufModel& file, const Piece& piece, std::vector<std::byte>& staging) {
  const LoadJob& job = *piece.job;
  const TensorType type = job.tensor->type;
  const std::uint64_t row_bytes = RowBytes(type, job.cols).count();
  if (staging.size() < piece.rows * row_bytes) staging.resize(piece.rows * row_bytes);
  const std::span<std::byte> rows = std::span(staging).first(piece.rows * row_bytes);
  TROUPE_RETURN_IF_ERROR(
      file.ReadRange(*job.tensor, job.offset + piece.first_row * row_bytes, rows));
  switch (job.form) {
    case LoadJob::Form::kPanels:
      PackPanels(
          type, piece.rows, job.cols, rows,
          {job.target + piece.first_row * row_bytes, PanelBytes(type, piece.rows, job.cols)});
      break;
    case LoadJob::Form::kFloats:
      DequantizeRow(type, rows, {reinterpret_cast<float*>(job.target), job.cols});
      if (job.factor != 1) {
        Scale(job.factor, reinterpret_cast<float*>(job.target), job.cols);
      }
      break;
    case LoadJob::Form::kColumns:
      StoreColumns(piece, rows);
      break;
    case LoadJob::Form::kTransposed:
      Transpose(piece, rows);
      break;
  }
  return OkStatus();
}

Bytes SourceBytes(const std::vector<LoadJob>& jobs) {
  Bytes sum;
  for (const LoadJob& job : jobs) sum += job.rows * RowBytes(job.tensor->type, job.cols);
  return sum;
}

Status LoadAll(const GgufModel& file, const std::vector<LoadJob>& jobs, ThreadPool& pool,
               Bytes total, const ByteProgress& progress) {
  const std::vector<Piece> pieces = CutIntoPieces(jobs);
  std::vector<std::vector<std::byte>> staging(pool.threads());
  std::atomic<bool> failed{false};
  Mutex mu;
  Status first_error;  // guarded by mu
  Bytes done;          // guarded by mu
  pool.Run(pieces.size(), [&](std::size_t p, std::size_t thread) {
    if (failed.load(std::memory_order_relaxed)) return;
    const Piece& piece = pieces[p];
    Status status = LoadPiece(file, piece, staging[thread]);
    Bytes so_far;
    if (status.ok()) {
      const MutexLock lock(mu);
      done += piece.rows * RowBytes(piece.job->tensor->type, piece.job->cols);
      so_far = done;
    }
    if (status.ok() && thread == 0) status = Report(progress, so_far, total);
    if (status.ok()) return;
    const MutexLock lock(mu);
    failed.store(true);
    if (first_error.ok()) first_error = std::move(status);
  });
  return first_error;
}

}  // namespace

Result<WeightMeasure> MeasureWeights(const GgufModel& file, const ModelConfig& config) {
  return MeasureWeights(file, config, {0, config.layers});
}

Result<WeightMeasure> MeasureWeights(const GgufModel& file, const ModelConfig& config,
                                     LayerRange layers) {
  WeightBinder counter(file, config, layers, RoutedExperts::kResident);
  TROUPE_RETURN_IF_ERROR(counter.Bind().status());
  return WeightMeasure{.bytes = {.dense = counter.used_bytes() - counter.expert_bytes(),
                                 .experts = counter.expert_bytes()},
                       .experts = counter.expert_layouts()};
}

Result<WeightStore> LoadWeights(const GgufModel& file, const ModelConfig& config, LayerRange layers,
                                RoutedExperts experts, ThreadPool& pool,
                                const ByteProgress& progress) {
  WeightBinder counter(file, config, layers, experts);
  TROUPE_RETURN_IF_ERROR(counter.Bind().status());
  TROUPE_ASSIGN_OR_RETURN(
      AlignedBuffer buffer,
      AlignedBuffer::Allocate(counter.used_bytes(), {.alignment = kHugePage, .huge_pages = true}));
  WeightBinder binder(file, config, layers, experts, buffer.bytes());
  TROUPE_ASSIGN_OR_RETURN(ModelWeights weights, binder.Bind());
  TROUPE_RETURN_IF_ERROR(LoadAll(file, binder.jobs(), pool, SourceBytes(binder.jobs()), progress));
  const WeightBytes bytes = {.dense = binder.used_bytes() - binder.expert_bytes(),
                             .experts = binder.expert_bytes()};
  return WeightStore(std::move(buffer), std::move(weights), bytes);
}

}  // namespace troupe
