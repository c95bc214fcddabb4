// Products of packed weights on one thread. BM_MatVec is decode: bound by reading weights, so
// bytes/s is what counts, compared with BM_ReadBytes; the weights of as many matrices as exceed any
// cache are gone through in turn. BM_MatVecCached has one matrix and says what the arithmetic could
// do. BM_MatMul is prefill, by 2 to 256 tokens: MAC/s counts, compared with BM_PeakMacs.
#include <benchmark/benchmark.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"
#include "kernels/matmul.h"
#include "kernels/quantize_activations.h"
#include "kernels/read_sum.h"
#include "kernels/target.h"
#include "quant/random_rows.h"

namespace troupe {
namespace {

constexpr std::size_t kBeyondCaches = std::size_t{128} << 20;

// Memory as the engine gets it for weights: in huge pages where the system has them.
struct WeightMemory {
  explicit WeightMemory(std::size_t size) {
    constexpr std::size_t kHugePage = std::size_t{2} << 20;
    const std::size_t whole = (size + kHugePage - 1) / kHugePage * kHugePage;
    bytes.reset(static_cast<std::byte*>(std::aligned_alloc(kHugePage, whole)));
    (void)::madvise(bytes.get(), whole, MADV_HUGEPAGE);
    std::memset(bytes.get(), 0, whole);
  }
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte[], Free> bytes;
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
      std::byte* panels = weights.bytes.get() + i * bytes_each;
      if (i == 0) {
        PackPanels(type, rows, cols, native, {panels, bytes_each});
      } else {
        std::memcpy(panels, weights.bytes.get(), bytes_each);
      }
      w.push_back({type, rows, cols, panels});
    }
    for (float& v : values) v = static_cast<float>(rng.Normal());
    x = MakeActivations(values.data(), cols, tokens, cols, storage);
    QuantizeActivations(x, 0, tokens);
  }
  std::size_t bytes_each;
  WeightMemory weights;
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

#if defined(__x86_64__)
// The most that AVX-512 VNNI multiplies: nothing but products of registers, twelve at a time.
__attribute__((target("avx512f"))) void BM_PeakMacs(benchmark::State& state) {
  constexpr int kChains = 12, kRounds = 1000;
  const __m512i ones = _mm512_set1_epi32(0x01010101);
  __m512i a = ones, b = ones, c = ones, d = ones, e = ones, f = ones;
  __m512i g = ones, h = ones, i = ones, j = ones, k = ones, l = ones;
  for (auto _ : state) {
    for (int round = 0; round < kRounds; ++round) {
      asm("vpdpbusd %6, %6, %0\n vpdpbusd %6, %6, %1\n vpdpbusd %6, %6, %2\n"
          "vpdpbusd %6, %6, %3\n vpdpbusd %6, %6, %4\n vpdpbusd %6, %6, %5"
          : "+v"(a), "+v"(b), "+v"(c), "+v"(d), "+v"(e), "+v"(f)
          : "v"(ones));
      asm("vpdpbusd %6, %6, %0\n vpdpbusd %6, %6, %1\n vpdpbusd %6, %6, %2\n"
          "vpdpbusd %6, %6, %3\n vpdpbusd %6, %6, %4\n vpdpbusd %6, %6, %5"
          : "+v"(g), "+v"(h), "+v"(i), "+v"(j), "+v"(k), "+v"(l)
          : "v"(ones));
    }
    asm volatile("" ::"v"(a), "v"(b), "v"(c), "v"(d), "v"(e), "v"(f));
    asm volatile("" ::"v"(g), "v"(h), "v"(i), "v"(j), "v"(k), "v"(l));
  }
  state.counters["MAC/s"] =
      benchmark::Counter(64.0 * kChains * kRounds, benchmark::Counter::kIsIterationInvariantRate);
}
#endif

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
  const WeightMemory panels(PanelBytes(type, rows, cols));
  for (auto _ : state) {
    PackPanels(type, rows, cols, native, {panels.bytes.get(), native.size()});
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * native.size()));
}

// The most that one core reads with a plain loop.
void BM_ReadBytes(benchmark::State& state) {
  const WeightMemory memory(kBeyondCaches);
  for (auto _ : state) benchmark::DoNotOptimize(ReadSum(memory.bytes.get(), kBeyondCaches));
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * kBeyondCaches));
}
BENCHMARK(BM_ReadBytes)->Unit(benchmark::kMillisecond);

bool RegisterAll() {
#if defined(__x86_64__)
  if (SupportedTargets().back() == Target::kAvx512Vnni) {
    benchmark::RegisterBenchmark("BM_PeakMacs", BM_PeakMacs);
  }
#endif
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
