#include "forge/synth_weights.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

#include "quant/quantize.h"

namespace troupe {
namespace {

// Of a task for one thread, and of what a call of the sink gets: long enough to be worth a task,
// short enough to be still in the cache when it is written.
constexpr std::uint64_t kDrawnAtOnce = 16 * 1024;
constexpr std::uint64_t kTasksPerWrite = 64;

// Weights in a pool. A row of a few thousand picks of 32 from it; two rows hardly ever share one.
constexpr std::uint64_t kPoolElements = 1 << 20;
constexpr std::uint64_t kPoolRow = 4096;
// Picked as a whole; a block if that is larger.
constexpr std::uint64_t kLeastUnitElements = 32;

constexpr std::uint64_t kPickBytes = 64 * 1024;

std::uint64_t Mix(std::uint64_t seed, std::uint64_t with) {
  return Rng(seed ^ (with * 0x9e3779b97f4a7c15u)).Next();
}

std::uint64_t Hash(std::string_view text) {  // FNV-1a
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

void DrawRow(Rng rng, TensorType type, double mean, double deviation, std::span<float> row,
             std::span<std::byte> out) {
  for (float& weight : row) weight = static_cast<float>(mean + deviation * DrawBell(rng));
  QuantizeRow(type, row, out);
}

}  // namespace

double DrawBell(Rng& rng) {
  constexpr double kMean = 8 * 65535 / 2.0;
  constexpr double kOneOverDeviation = 1.8688123650118534e-05;  // sqrt(12 / (8 (2^32 - 1)))
  std::uint64_t sum = 0;
  for (int word = 0; word < 2; ++word) {
    const std::uint64_t bits = rng.Next();
    sum += (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48);
  }
  return (static_cast<double>(sum) - kMean) * kOneOverDeviation;
}

Status WeightSource::Generate(const SynthTensor& tensor, const Sink& sink) {
  // What is not quantizable is small, and of a mean that matters: always drawn.
  const bool pool = method_ == Method::kFromPool && IsQuantizable(tensor.spec);
  return pool ? PickFromPool(tensor, sink) : DrawEach(tensor, sink);
}

Status WeightSource::DrawEach(const SynthTensor& tensor, const Sink& sink) {
  const TensorSpec& spec = tensor.spec;
  const std::uint64_t columns = spec.dims[0];
  const std::uint64_t rows = spec.ElementCount() / columns;
  const std::uint64_t row_bytes = RowBytes(spec.type, columns).count();
  const std::uint64_t rows_per_task = std::max<std::uint64_t>(1, kDrawnAtOnce / columns);
  const std::uint64_t rows_per_chunk = std::min(rows, rows_per_task * kTasksPerWrite);
  const std::uint64_t seed = Mix(seed_, Hash(spec.name));

  std::vector<std::byte> chunk(rows_per_chunk * row_bytes);
  std::vector<float> floats(threads_.threads() * columns);
  for (std::uint64_t first = 0; first < rows; first += rows_per_chunk) {
    const std::uint64_t count = std::min(rows_per_chunk, rows - first);
    const std::uint64_t tasks = (count + rows_per_task - 1) / rows_per_task;
    threads_.Run(tasks, [&](std::size_t task, std::size_t thread) {
      const std::span row(floats.data() + thread * columns, columns);
      const std::uint64_t end = std::min(count, (task + 1) * rows_per_task);
      for (std::uint64_t r = task * rows_per_task; r < end; ++r) {
        DrawRow(Rng(Mix(seed, first + r)), spec.type, tensor.mean, tensor.deviation, row,
                std::span(chunk).subspan(r * row_bytes, row_bytes));
      }
    });
    TROUPE_RETURN_IF_ERROR(sink(std::span(chunk).first(count * row_bytes)));
  }
  return OkStatus();
}

Status WeightSource::PickFromPool(const SynthTensor& tensor, const Sink& sink) {
  const TensorSpec& spec = tensor.spec;
  const Pool& pool = PoolFor(spec.type, tensor.deviation);
  const TensorTypeInfo& info = Info(spec.type);
  const std::uint64_t total = spec.ElementCount() / info.block_elems * info.block_bytes;
  const std::uint64_t seed = Mix(seed_, Hash(spec.name));

  // A multiple of the unit, so that tasks meet where units do.
  const std::uint64_t task_bytes = kPickBytes / pool.unit_bytes * pool.unit_bytes;
  const std::uint64_t chunk_bytes = std::min(total, task_bytes * kTasksPerWrite);
  std::vector<std::byte> chunk(chunk_bytes);
  for (std::uint64_t done = 0; done < total; done += chunk_bytes) {
    const std::uint64_t count = std::min(chunk_bytes, total - done);
    const std::uint64_t tasks = (count + task_bytes - 1) / task_bytes;
    threads_.Run(tasks, [&](std::size_t task, std::size_t) {
      Rng rng(Mix(seed, done / task_bytes + task));
      const std::uint64_t end = std::min(count, (task + 1) * task_bytes);
      for (std::uint64_t at = task * task_bytes; at < end; at += pool.unit_bytes) {
        const std::uint64_t unit = (rng.Next() >> 32) * pool.units >> 32;
        std::memcpy(&chunk[at], &pool.bytes[unit * pool.unit_bytes],
                    std::min<std::uint64_t>(pool.unit_bytes, end - at));
      }
    });
    TROUPE_RETURN_IF_ERROR(sink(std::span(chunk).first(count)));
  }
  return OkStatus();
}

const WeightSource::Pool& WeightSource::PoolFor(TensorType type, double deviation) {
  const auto [at, inserted] = pools_.try_emplace({type, deviation});
  Pool& pool = at->second;
  if (!inserted) return pool;
  const std::uint64_t unit_elements =
      std::max<std::uint64_t>(kLeastUnitElements, Info(type).block_elems);
  pool.unit_bytes = RowBytes(type, unit_elements).count();
  pool.units = static_cast<std::uint32_t>(kPoolElements / unit_elements);
  pool.bytes.resize(pool.units * pool.unit_bytes);
  const std::uint64_t row_bytes = RowBytes(type, kPoolRow).count();
  // Pools must not share blocks: a row of the output that repeats one of a token's embedding would
  // find it again in the residual stream, and that logit would stand out from all others.
  const std::uint64_t seed = Mix(seed_, std::bit_cast<std::uint64_t>(deviation));
  threads_.Run(kPoolElements / kPoolRow, [&](std::size_t row, std::size_t) {
    std::vector<float> floats(kPoolRow);
    DrawRow(Rng(Mix(seed, row)), type, 0.0, deviation, floats,
            std::span(pool.bytes).subspan(row * row_bytes, row_bytes));
  });
  return pool;
}

}  // namespace troupe
