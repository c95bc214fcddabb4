// Products of packed weights on the first card there is, or else on the first device, whose name
// the label has: bytes of weights a second for few rows, multiplications a second for many. As many
// matrices as exceed a card's cache are gone through in turn. A launch is waited for every round.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"
#include "gpu/device_copies.h"
#include "gpu/usable_gpu.h"
#include "quant/activations.h"
#include "quant/panel.h"
#include "quant/random_rows.h"

namespace troupe {
namespace {

constexpr std::size_t kBeyondCaches = std::size_t{96} << 20;

Result<TestedGpu> FirstGpu(TensorType type) {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<GpuInfo> infos, ListGpus());
  TROUPE_ASSIGN_OR_RETURN(const std::vector<std::size_t> cards, ChooseGpus(infos, "auto"));
  return OpenTestedGpu(cards.empty() ? 0 : cards.front(), {&type, 1});
}

std::string Describe(TensorType type, const GpuDevice& device) {
  return std::string(Name(type)) + " on " + device.info().name;
}

void BM_GpuProduct(benchmark::State& state, TensorType type) {
  const auto rows = static_cast<std::uint32_t>(state.range(0));
  const auto cols = static_cast<std::uint32_t>(state.range(1));
  const auto tokens = static_cast<std::uint32_t>(state.range(2));
  auto gpu = FirstGpu(type);
  if (!gpu.ok()) return state.SkipWithError(gpu.status().message().c_str());
  GpuDevice& device = *gpu->device;
  const std::size_t bytes = PanelBytes(type, rows, cols);
  const std::size_t matrices = std::max<std::size_t>(1, kBeyondCaches / bytes);
  Rng rng(1);
  std::vector<std::byte> panels(bytes * matrices);
  PackPanels(type, rows, cols, RandomRows(type, rows, cols, rng), std::span(panels).first(bytes));
  for (std::size_t i = 1; i < matrices; ++i) {
    std::copy_n(panels.begin(), bytes, panels.begin() + static_cast<std::ptrdiff_t>(i * bytes));
  }
  std::vector<float> values(std::size_t{tokens} * cols, 0.5f);
  const auto weights = BufferWith(device, panels).value();
  const auto x = BufferWith(device, std::as_bytes(std::span(values))).value();
  const auto codes = device.Allocate(Bytes(ActivationBytes(tokens, cols))).value();
  const auto out = device.Allocate(Bytes(std::uint64_t{tokens} * rows * sizeof(float))).value();
  const GpuRows input{x.get(), codes.get(), tokens, cols};
  if (!gpu->kernels->Quantize(input, {}).ok()) return state.SkipWithError("cannot quantize");
  for (auto _ : state) {
    GpuEventPtr done;
    for (std::size_t i = 0; i < matrices; ++i) {
      const GpuMatrix matrix{type, rows, cols, weights.get(), i * bytes};
      done = gpu->kernels->Multiply(matrix, {}, input, nullptr, tokens, *out, {}).value();
    }
    if (!done->Wait().ok()) return state.SkipWithError("the device failed");
  }
  const auto products = static_cast<double>(state.iterations()) * static_cast<double>(matrices);
  state.SetBytesProcessed(static_cast<std::int64_t>(products) * static_cast<std::int64_t>(bytes));
  state.counters["MAC/s"] =
      benchmark::Counter(products * rows * cols * tokens, benchmark::Counter::kIsRate);
  state.SetLabel(Describe(type, device));
}

void ShapesOfExperts(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"rows", "cols", "tokens"})->UseRealTime();
  for (const int tokens : {1, 8, 64}) bench->Args({1024, 2048, tokens});
}

BENCHMARK_CAPTURE(BM_GpuProduct, Q8_0, TensorType::kQ8_0)->Apply(ShapesOfExperts);
BENCHMARK_CAPTURE(BM_GpuProduct, Q4_0, TensorType::kQ4_0)->Apply(ShapesOfExperts);
BENCHMARK_CAPTURE(BM_GpuProduct, Q4_K, TensorType::kQ4_K)->Apply(ShapesOfExperts);
BENCHMARK_CAPTURE(BM_GpuProduct, Q6_K, TensorType::kQ6_K)->Apply(ShapesOfExperts);

}  // namespace
}  // namespace troupe
