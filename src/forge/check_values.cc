#include "forge/check_values.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "base/first_error.h"
#include "base/thread_pool.h"
#include "quant/dequantize.h"

namespace troupe {
namespace {

constexpr std::size_t kMatricesAtOnce = 64;  // between two calls of go_on

struct MatrixToCheck {
  const TensorInfo* tensor = nullptr;
  std::uint64_t matrix = 0, matrices = 1;
  bool finite = true;

  Bytes bytes() const { return Bytes(tensor->bytes.count() / matrices); }
};

struct CheckScratch {
  std::vector<std::byte> row;
  std::vector<float> floats;
};

Status CheckMatrix(const GgufModel& model, MatrixToCheck& matrix, CheckScratch& scratch) {
  const TensorInfo& tensor = *matrix.tensor;
  const std::uint64_t columns = tensor.dims[0];
  const std::uint64_t row_bytes = RowBytes(tensor.type, columns).count();
  scratch.row.resize(row_bytes);
  scratch.floats.resize(columns);
  const std::uint64_t first = matrix.matrix * matrix.bytes().count();
  for (std::uint64_t at = 0; at < matrix.bytes().count(); at += row_bytes) {
    TROUPE_RETURN_IF_ERROR(model.ReadRange(tensor, first + at, scratch.row));
    DequantizeRow(tensor.type, scratch.row, scratch.floats);
    const auto is_finite = [](float value) { return std::isfinite(value); };
    if (std::ranges::all_of(scratch.floats, is_finite)) continue;
    matrix.finite = false;
    return OkStatus();
  }
  return OkStatus();
}

}  // namespace

Result<std::vector<std::string>> PartsWithoutNumbers(
    const GgufModel& model, std::size_t threads,
    const std::function<bool(Bytes done, Bytes total)>& go_on) {
  std::vector<MatrixToCheck> matrices;
  for (const TensorInfo& tensor : model.tensors()) {
    const std::uint64_t count = tensor.dims[2] * tensor.dims[3];
    for (std::uint64_t m = 0; m < count; ++m) matrices.push_back({&tensor, m, count});
  }
  ThreadPool pool(threads);
  std::vector<CheckScratch> scratch(pool.threads());
  Bytes done;
  for (std::size_t first = 0; first < matrices.size(); first += kMatricesAtOnce) {
    const std::size_t count = std::min(kMatricesAtOnce, matrices.size() - first);
    FirstError error;
    pool.Run(count, [&](std::size_t task, std::size_t thread) {
      error.Note(task, CheckMatrix(model, matrices[first + task], scratch[thread]));
    });
    TROUPE_RETURN_IF_ERROR(error.Take());
    for (std::size_t i = first; i < first + count; ++i) done += matrices[i].bytes();
    if (go_on && !go_on(done, model.tensor_bytes())) return Error(Code::kCancelled, "stopped");
  }
  std::vector<std::string> parts;
  for (const MatrixToCheck& matrix : matrices) {
    if (matrix.finite) continue;
    const std::string expert =
        matrix.matrices > 1 ? fmt::format(": expert {} of {}", matrix.matrix, matrix.matrices) : "";
    parts.push_back(fmt::format("tensor '{}'{}", matrix.tensor->name, expert));
  }
  return parts;
}

}  // namespace troupe
