#include "model/weight_loader.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>

#include "base/mutex.h"
#include "kernels/elementwise.h"
#include "model/weight_binder.h"
#include "quant/dequantize.h"

namespace troupe {
namespace {

// Read and packed at once: large enough that the call costs nothing, small enough that the bytes
// are still in the second-level cache when they are packed.
constexpr std::uint64_t kPieceBytes = 512 << 10;

// What passes of a job is compared in order, though its pieces are loaded by all threads: a piece
// waits for the one before it, which some thread has begun, since pieces are handed out in order.
struct JobCheck {
  std::unique_ptr<MatrixCheck> matrix;  // nothing: not while it is loaded
  std::atomic<std::size_t> next_row{0};
};

struct Piece {
  const LoadJob* job;
  JobCheck* check;
  std::size_t first_row;
  std::size_t rows;
};

std::uint64_t SourceBytes(const LoadJob& job) {
  return job.rows * RowBytes(job.tensor->type, job.cols).count();
}

std::uint64_t MatrixBytes(const TensorInfo& tensor) {
  return tensor.bytes.count() / tensor.MatrixCount();
}

using Matrix = std::pair<const TensorInfo*, std::uint64_t>;

// A matrix that is loaded as one; others are compared afterwards.
bool IsWholeMatrix(const LoadJob& job) {
  const std::uint64_t matrix = MatrixBytes(*job.tensor);
  return SourceBytes(job) == matrix && job.offset % matrix == 0;
}

std::vector<JobCheck> BeginChecks(const std::vector<LoadJob>& jobs, const WeightChecks* checks) {
  std::vector<JobCheck> begun(jobs.size());
  for (std::size_t i = 0; checks != nullptr && i < jobs.size(); ++i) {
    if (!IsWholeMatrix(jobs[i])) continue;
    begun[i].matrix = checks->Begin(*jobs[i].tensor, jobs[i].offset / MatrixBytes(*jobs[i].tensor));
  }
  return begun;
}

std::vector<Piece> CutIntoPieces(const std::vector<LoadJob>& jobs, std::vector<JobCheck>& checks) {
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const LoadJob& job = jobs[i];
    if (job.form != LoadJob::Form::kPanels) {
      pieces.push_back({&job, &checks[i], 0, job.rows});
      continue;
    }
    const std::uint64_t panel_bytes = kPanelRows * RowBytes(job.tensor->type, job.cols).count();
    const std::size_t step = std::max<std::uint64_t>(1, kPieceBytes / panel_bytes) * kPanelRows;
    for (std::size_t row = 0; row < job.rows; row += step) {
      pieces.push_back({&job, &checks[i], row, std::min(step, job.rows - row)});
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

Status CheckPiece(const Piece& piece, std::span<const std::byte> rows,
                  const std::atomic<bool>& failed) {
  JobCheck& check = *piece.check;
  if (check.matrix == nullptr) return OkStatus();
  while (check.next_row.load(std::memory_order_acquire) != piece.first_row) {
    if (failed.load(std::memory_order_relaxed)) return OkStatus();
    std::this_thread::yield();
  }
  check.matrix->Add(rows);
  const std::size_t next = piece.first_row + piece.rows;
  if (next == piece.job->rows) return check.matrix->Finish();
  check.next_row.store(next, std::memory_order_release);
  return OkStatus();
}

Status LoadPiece(const GgufModel& file, const Piece& piece, std::vector<std::byte>& staging,
                 const std::atomic<bool>& failed) {
  const LoadJob& job = *piece.job;
  const TensorType type = job.tensor->type;
  const std::uint64_t row_bytes = RowBytes(type, job.cols).count();
  if (staging.size() < piece.rows * row_bytes) staging.resize(piece.rows * row_bytes);
  const std::span<std::byte> rows = std::span(staging).first(piece.rows * row_bytes);
  TROUPE_RETURN_IF_ERROR(
      file.ReadRange(*job.tensor, job.offset + piece.first_row * row_bytes, rows));
  TROUPE_RETURN_IF_ERROR(CheckPiece(piece, rows, failed));
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
  for (const LoadJob& job : jobs) sum += Bytes(SourceBytes(job));
  return sum;
}

Status LoadAll(const GgufModel& file, const std::vector<LoadJob>& jobs,
               std::vector<JobCheck>& begun, ThreadPool& pool, const ByteProgress& progress) {
  const Bytes total = SourceBytes(jobs);
  const std::vector<Piece> pieces = CutIntoPieces(jobs, begun);
  std::vector<std::vector<std::byte>> staging(pool.threads());
  std::atomic<bool> failed{false};
  Mutex mu;
  Status first_error;  // guarded by mu
  Bytes done;          // guarded by mu
  pool.Run(pieces.size(), [&](std::size_t p, std::size_t thread) {
    if (failed.load(std::memory_order_relaxed)) return;
    const Piece& piece = pieces[p];
    Status status = LoadPiece(file, piece, staging[thread], failed);
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

// Reads once more what was not loaded as one matrix, and what the binder has read itself. Adds to
// `compared`.
Status CheckDivided(const GgufModel& file, const std::vector<LoadJob>& jobs,
                    const WeightChecks& checks, std::vector<Matrix>& compared) {
  std::vector<Matrix> matrices;
  for (const LoadJob& job : jobs) {
    if (IsWholeMatrix(job)) continue;
    const std::uint64_t bytes = MatrixBytes(*job.tensor);
    for (std::uint64_t m = job.offset / bytes; m * bytes < job.offset + SourceBytes(job); ++m) {
      matrices.emplace_back(job.tensor, m);
    }
  }
  if (const TensorInfo* factors = file.Find("rope_freqs.weight")) matrices.emplace_back(factors, 0);
  std::sort(matrices.begin(), matrices.end());
  matrices.erase(std::unique(matrices.begin(), matrices.end()), matrices.end());
  std::vector<std::byte> staging(kPieceBytes);
  for (const auto& [tensor, m] : matrices) {
    const std::unique_ptr<MatrixCheck> check = checks.Begin(*tensor, m);
    if (check == nullptr) continue;
    const std::uint64_t bytes = MatrixBytes(*tensor);
    for (std::uint64_t at = 0; at < bytes; at += kPieceBytes) {
      const std::span<std::byte> piece =
          std::span(staging).first(std::min(kPieceBytes, bytes - at));
      TROUPE_RETURN_IF_ERROR(file.ReadRange(*tensor, m * bytes + at, piece));
      check->Add(piece);
    }
    TROUPE_RETURN_IF_ERROR(check->Finish());
    compared.emplace_back(tensor, m);
  }
  return OkStatus();
}

// Experts of which every matrix is among those.
std::uint64_t CountExperts(const ExpertLayouts& layouts, std::vector<Matrix> compared) {
  std::ranges::sort(compared);
  std::uint64_t experts = 0;
  for (const ExpertLayout& layout : layouts) {
    if (layout.empty()) continue;
    for (std::uint64_t e = 0; e < layout.matrices[0].tensor->MatrixCount(); ++e) {
      experts += std::ranges::all_of(layout.matrices, [&](const ExpertMatrix& matrix) {
        return std::ranges::binary_search(compared, Matrix(matrix.tensor, e));
      });
    }
  }
  return experts;
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
                                const ByteProgress& progress, const WeightChecks* checks) {
  WeightBinder counter(file, config, layers, experts);
  TROUPE_RETURN_IF_ERROR(counter.Bind().status());
  TROUPE_ASSIGN_OR_RETURN(
      AlignedBuffer buffer,
      AlignedBuffer::Allocate(counter.used_bytes(), {.alignment = kHugePage, .huge_pages = true}));
  WeightBinder binder(file, config, layers, experts, buffer.bytes());
  TROUPE_ASSIGN_OR_RETURN(ModelWeights weights, binder.Bind());
  const std::vector<LoadJob>& jobs = binder.jobs();
  std::vector<JobCheck> begun = BeginChecks(jobs, checks);
  TROUPE_RETURN_IF_ERROR(LoadAll(file, jobs, begun, pool, progress));
  std::vector<Matrix> compared;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (begun[i].matrix == nullptr) continue;
    compared.emplace_back(jobs[i].tensor, jobs[i].offset / MatrixBytes(*jobs[i].tensor));
  }
  if (checks != nullptr) TROUPE_RETURN_IF_ERROR(CheckDivided(file, jobs, *checks, compared));
  const WeightBytes bytes = {.dense = binder.used_bytes() - binder.expert_bytes(),
                             .experts = binder.expert_bytes()};
  return WeightStore(std::move(buffer), std::move(weights), bytes,
                     CountExperts(binder.expert_layouts(), std::move(compared)));
}

}  // namespace troupe
