// Decode is bound by the bytes of keys and values read (bytes/s), prefill by fma (flop/s; compare
// with fma_peak_bench). One thread.
#include "kernels/attention.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "base/rng.h"
#include "kernels/target.h"

namespace troupe {
namespace {

struct Model {
  KvLayout layout;
  std::uint32_t heads;
};

Model ModelOf(std::int64_t number) {
  switch (number) {
    case 0:  // Qwen3-30B-A3B
      return {{.kv_heads = 4, .k_dim = 128, .v_dim = 128}, 32};
    case 1:  // the same, 8 bits
      return {{.type = KvType::kQ8_0, .kv_heads = 4, .k_dim = 128, .v_dim = 128}, 32};
    case 2:  // OLMoE: no groups
      return {{.kv_heads = 16, .k_dim = 128, .v_dim = 128}, 16};
    default:  // DeepSeek-V2-Lite, absorbed
      return {{.kv_heads = 1, .k_dim = 576, .v_dim = 512, .values_in_keys = true}, 16};
  }
}
constexpr const char* kModelNames[] = {"qwen3 f16", "qwen3 q8_0", "olmoe f16", "deepseek2 f16"};

struct AttentionCase {
  AttentionCase(const Model& model, std::size_t positions, std::size_t tokens)
      : layout(model.layout), heads(model.heads) {
    layout.capacity = Attention::kBlock;
    for (std::size_t page = 0; page * layout.capacity < positions; ++page) {
      pages.push_back(static_cast<std::uint32_t>(page));
    }
    const std::size_t page_bytes = layout.TotalBytes().count();
    Rng rng(1);
    const auto normal = [&rng] { return static_cast<float>(rng.Normal()); };
    memory = std::make_unique<std::byte[]>(pages.size() * page_bytes);
    std::vector<float> row(std::max(layout.k_dim, layout.v_dim));
    for (std::size_t head = 0; head < layout.kv_heads; ++head) {
      for (std::size_t p = 0; p < positions; ++p) {
        for (float& x : row) x = normal();
        std::byte* const page = memory.get() + p / layout.capacity * page_bytes;
        const std::size_t at = p % layout.capacity;
        StoreKeys(layout, page, head, at, 1, row.data(), 0);
        if (!layout.values_in_keys) StoreValues(layout, page, head, at, 1, row.data(), 0);
      }
    }
    q.resize(tokens * heads * layout.k_dim);
    for (float& x : q) x = normal();
    out.resize(tokens * heads * layout.v_dim);
    scratch.resize(Attention::ScratchFloats(layout));
    call = {.layout = layout,
            .kv = {.memory = memory.get(), .page_bytes = page_bytes, .pages = pages},
            .heads = heads,
            .scale = 1.0f / std::sqrt(static_cast<float>(layout.k_dim)),
            .start = positions - tokens,
            .tokens = tokens,
            .q = q.data(),
            .q_stride = heads * layout.k_dim,
            .out = out.data(),
            .out_stride = heads * layout.v_dim};
  }

  void Run() {
    const Attention attention(call, 1, {});
    for (std::size_t task = 0; task < attention.tasks(); ++task) attention.Run(task, scratch);
    benchmark::ClobberMemory();
  }

  // Two operations for each fma of a score or of a sum of values; masked ones do not count.
  double Flops() const {
    double flops = 0;
    for (std::size_t t = 0; t < call.tokens; ++t) {
      flops +=
          2.0 * static_cast<double>((call.start + t + 1) * heads) * (layout.k_dim + layout.v_dim);
    }
    return flops;
  }

  KvLayout layout;
  std::uint32_t heads;
  std::vector<std::uint32_t> pages;
  std::unique_ptr<std::byte[]> memory;
  std::vector<float> q, out, scratch;
  AttentionCall call;
};

void Report(benchmark::State& state, const AttentionCase& c) {
  state.counters["flop/s"] =
      benchmark::Counter(c.Flops(), benchmark::Counter::kIsIterationInvariantRate);
}

void BM_Decode(benchmark::State& state) {
  AttentionCase c(ModelOf(state.range(0)), static_cast<std::size_t>(state.range(1)), 1);
  for (auto _ : state) c.Run();
  Report(state, c);
  state.SetLabel(kModelNames[state.range(0)]);
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(
                                                   c.pages.size() * c.layout.TotalBytes().count()));
}
BENCHMARK(BM_Decode)
    ->ArgNames({"model", "keys"})
    ->ArgsProduct({{0, 1, 2, 3}, {512, 2048, 8192}})
    ->Unit(benchmark::kMicrosecond);

void BM_Prefill(benchmark::State& state) {
  const auto start = static_cast<std::size_t>(state.range(1));
  AttentionCase c(ModelOf(state.range(0)), start + 512, 512);
  for (auto _ : state) c.Run();
  Report(state, c);
  state.SetLabel(kModelNames[state.range(0)]);
}
BENCHMARK(BM_Prefill)
    ->ArgNames({"model", "start"})
    ->ArgsProduct({{0, 1, 2, 3}, {0, 4096}})
    ->Unit(benchmark::kMillisecond);

// Qwen3 on each target of this machine but the scalar one.
void BM_PrefillByTarget(benchmark::State& state) {
  const Target target = SupportedTargets()[static_cast<std::size_t>(state.range(0))];
  ForceTarget(target);
  AttentionCase c(ModelOf(0), 512, 512);
  for (auto _ : state) c.Run();
  Report(state, c);
  state.SetLabel(std::string(Name(target)));
  ForceTarget(std::nullopt);
}
BENCHMARK(BM_PrefillByTarget)
    ->DenseRange(1, static_cast<int>(SupportedTargets().size()) - 1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace troupe
