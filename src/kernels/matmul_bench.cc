// Products of packed weights on one thread. BM_MatVec is decode: bound by reading weights, so
// bytes/s is what counts, beside BM_ReadBytes, the most one core reads here; the weights of as many
// matrices as exceed any cache are gone through in turn. BM_MatMul is prefill: MAC/s counts, beside
// BM_PeakMacs.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"
#include "kernels/activations.h"
#include "kernels/matmul.h"
#include "kernels/target.h"
#include "quant/random_rows.h"

namespace troupe {
namespace {

constexpr std::size_t kBeyondCaches = std::size_t{256} << 20;

struct AlignedBytes {
  explicit AlignedBytes(std::size_t size) : storage(size + 64) {
    void* p = storage.data();
    std::size_t space = storage.size();
    data = static_cast<std::byte*>(std::align(64, size, p, space));
  }
  std::vector<std::byte> storage;
  std::byte* data;
};

struct Case {
  Case(TensorType type, std::size_t rows, std::size_t cols, std::size_t tokens,
       std::size_t matrices)
      : bytes_each(PanelBytes(type, rows, cols)),
        weights(bytes_each * matrices),
        values(tokens * cols),
        storage(ActivationBytes(tokens, cols)),
        out(tokens * rows) {
    Rng rng(1);
    const std::vector<std::byte> native = RandomRows(type, rows, cols, rng);
    for (std::size_t i = 0; i < matrices; ++i) {
      std::byte* panels = weights.data + i * bytes_each;
      if (i == 0) {
        PackPanels(type, rows, cols, native, {panels, bytes_each});
      } else {
        std::memcpy(panels, weights.data, bytes_each);
      }
      w.push_back({type, rows, cols, panels});
    }
    for (float& v : values) v = static_cast<float>(rng.Normal());
    x = MakeActivations(values.data(), cols, tokens, cols, storage);
    QuantizeActivations(x, 0, tokens);
  }
  std::size_t bytes_each;
  AlignedBytes weights;
  std::vector<PanelMatrix> w;
  std::vector<float> values;
  std::vector<std::byte> storage;
  std::vector<float> out;
  Activations x;
};

void SetRates(benchmark::State& state, const Case& c, std::size_t tokens) {
  const auto per_iteration = static_cast<double>(c.w[0].rows * c.w[0].cols * tokens);
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * c.bytes_each));
  state.counters["MAC/s"] =
      benchmark::Counter(per_iteration, benchmark::Counter::kIsIterationInvariantRate);
}

void BM_MatVec(benchmark::State& state, TensorType type, Target target, bool cached) {
  const auto rows = static_cast<std::size_t>(state.range(0));
  const auto cols = static_cast<std::size_t>(state.range(1));
  ForceTarget(target);
  const std::size_t bytes = PanelBytes(type, rows, cols);
  Case c(type, rows, cols, 1, cached ? 1 : kBeyondCaches / bytes + 1);
  std::size_t next = 0;
  for (auto _ : state) {
    const PanelMatrix& w = c.w[next];
    MatMulPanels(w, 0, w.Panels(), c.x, {}, c.out.data(), rows);
    benchmark::ClobberMemory();
    if (++next == c.w.size()) next = 0;
  }
  SetRates(state, c, 1);
  ForceTarget(std::nullopt);
}

void BM_MatMul(benchmark::State& state, TensorType type, Target target) {
  const auto rows = static_cast<std::size_t>(state.range(0));
  const auto cols = static_cast<std::size_t>(state.range(1));
  const auto tokens = static_cast<std::size_t>(state.range(2));
  ForceTarget(target);
  Case c(type, rows, cols, tokens, kBeyondCaches / PanelBytes(type, rows, cols) + 1);
  std::size_t next = 0;
  for (auto _ : state) {
    const PanelMatrix& w = c.w[next];
    MatMulPanels(w, 0, w.Panels(), c.x, {}, c.out.data(), rows);
    benchmark::ClobberMemory();
    if (++next == c.w.size()) next = 0;
  }
  SetRates(state, c, tokens);
  ForceTarget(std::nullopt);
}

void BM_QuantizeActivations(benchmark::State& state) {
  const auto cols = static_cast<std::size_t>(state.range(0));
  std::vector<float> values(cols, 1.0f);
  std::vector<std::byte> storage(ActivationBytes(1, cols));
  const Activations x = MakeActivations(values.data(), cols, 1, cols, storage);
  for (auto _ : state) {
    QuantizeActivations(x, 0, 1);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * cols));
}
BENCHMARK(BM_QuantizeActivations)->Arg(2048);

void BM_PackPanels(benchmark::State& state, TensorType type) {
  const std::size_t rows = 512, cols = 1024;
  Rng rng(1);
  const std::vector<std::byte> native = RandomRows(type, rows, cols, rng);
  AlignedBytes panels(PanelBytes(type, rows, cols));
  for (auto _ : state) {
    PackPanels(type, rows, cols, native, {panels.data, native.size()});
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * native.size()));
}

// The most that one core reads: every line of a range beyond all caches.
void BM_ReadBytes(benchmark::State& state) {
  const std::vector<std::uint64_t> words(kBeyondCaches / sizeof(std::uint64_t), 1);
  for (auto _ : state) {
    std::uint64_t sums[8] = {};
    for (std::size_t i = 0; i < words.size(); i += 8) {
      __builtin_prefetch(&words[i] + 1024);
      for (std::size_t j = 0; j < 8; ++j) sums[j] ^= words[i + j];
    }
    benchmark::DoNotOptimize(sums);
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * kBeyondCaches));
}
BENCHMARK(BM_ReadBytes)->Unit(benchmark::kMillisecond);

bool RegisterAll() {
  for (const TensorType type : AllTypes()) {
    const std::string name(Name(type));
    benchmark::RegisterBenchmark(("BM_PackPanels/" + name).c_str(), BM_PackPanels, type);
    for (const Target target : SupportedTargets()) {
      if (target == Target::kScalar) continue;
      const std::string suffix = name + "/" + std::string(Name(target));
      auto* decode = benchmark::RegisterBenchmark(("BM_MatVec/" + suffix).c_str(), BM_MatVec, type,
                                                  target, false);
      auto* cached = benchmark::RegisterBenchmark(("BM_MatVecCached/" + suffix).c_str(), BM_MatVec,
                                                  type, target, true);
      auto* prefill =
          benchmark::RegisterBenchmark(("BM_MatMul/" + suffix).c_str(), BM_MatMul, type, target);
      for (const auto& [rows, cols] :
           {std::pair{512, 1024}, {1024, 512}, {4096, 4096}, {2048, 1408}}) {
        if (cols % static_cast<int>(Info(type).block_elems) != 0) continue;
        decode->Args({rows, cols});
        for (const int tokens : {2, 4, 8, 64, 256}) prefill->Args({rows, cols, tokens});
      }
      cached->Args({512, 1024});
    }
  }
  return true;
}
[[maybe_unused]] const bool registered = RegisterAll();

}  // namespace
}  // namespace troupe
