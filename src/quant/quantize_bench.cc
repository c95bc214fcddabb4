// Elements per second of one core, there and back. 10^7 a second is a model of 10^9 weights in
// under a minute on two cores.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "base/rng.h"
#include "base/tensor_type.h"
#include "quant/dequantize.h"
#include "quant/quantize.h"

namespace troupe {
namespace {

constexpr std::size_t kElems = 8192;

std::vector<float> Values() {
  Rng rng(1);
  std::vector<float> x(kElems);
  for (float& v : x) v = static_cast<float>(0.02 * rng.Normal());
  return x;
}

void BM_QuantizeRow(benchmark::State& state, TensorType type, Rounding rounding) {
  const std::vector<float> x = Values();
  std::vector<std::byte> row(RowBytes(type, kElems).count());
  for (auto _ : state) {
    QuantizeRow(type, x, row, {}, rounding);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * kElems));
}

void BM_DequantizeRow(benchmark::State& state, TensorType type) {
  std::vector<float> x = Values();
  std::vector<std::byte> row(RowBytes(type, kElems).count());
  QuantizeRow(type, x, row);
  for (auto _ : state) {
    DequantizeRow(type, row, x);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * kElems));
}

[[maybe_unused]] const bool kRegistered = [] {
  for (const TensorTypeInfo& info : AllTensorTypes()) {
    const std::string name(info.name);
    benchmark::RegisterBenchmark(("QuantizePlain/" + name).c_str(), BM_QuantizeRow, info.type,
                                 Rounding::kPlain);
    benchmark::RegisterBenchmark(("QuantizeBest/" + name).c_str(), BM_QuantizeRow, info.type,
                                 Rounding::kBest);
    benchmark::RegisterBenchmark(("Dequantize/" + name).c_str(), BM_DequantizeRow, info.type);
  }
  return true;
}();

}  // namespace
}  // namespace troupe
