// Few tokens: the speed is that of reading weights from memory. Panels are gone through from the
// first byte to the last, codes go from registers straight into the products, and lines are asked
// for ahead of their use. The float operations and their order: quant/panel_reference.h.
#include "kernels/dot_product.h"
#include "kernels/matmul_parts.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/matmul_few.cc"
#include "hwy/foreach_target.h"  // compiles this file once per target
#include "hwy/highway.h"
#include "kernels/panel_dot-inl.h"
#include "kernels/panel_unpack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::HWY_NAMESPACE {

// Products of a panel with kT tokens, to out[t * kPanelRows + row].
template <typename Block, class Dot, std::size_t kT>
HWY_NOINLINE void MultiplyPanel(const std::byte* HWY_RESTRICT panel, std::size_t cols,
                                const ActivationGroup* const* HWY_RESTRICT tokens,
                                float* HWY_RESTRICT out) {
  using Layout = PanelLayout<Block>;
  constexpr std::size_t kRuns = kGroupCols / kScaleCols<Block>;
  constexpr std::size_t kRunChunks = kGroupChunks / kRuns;
  const ActivationGroup* x[kT];
  F acc[kStrips][kT];
  for (std::size_t t = 0; t < kT; ++t) {
    x[t] = tokens[t];
    for (std::size_t s = 0; s < kStrips; ++s) acc[s][t] = ZeroF();
  }
  std::size_t at = 0;  // the group, in x
  for (std::size_t col = 0; col < cols; col += Block::kElems) {
    Prefetch<Layout::kCodes>(panel);
    const RecordScales<Block> scales(panel);
    const std::byte* group = panel + Layout::kCodes;
    for (std::size_t g = 0; g < Layout::kGroups; ++g, group += Layout::kGroupBytes, ++at) {
      Prefetch<Layout::kGroupBytes>(group);
      for (std::size_t s = 0; s < kStrips; ++s) {
        C codes[kGroupChunks];
        UnpackGroup<Layout::kBits>(group + s * kLanes * kChunkCols, codes);
        F scale[kRuns], min[kRuns];
        for (std::size_t run = 0; run < kRuns; ++run) {
          scale[run] = scales.Scale(s * kLanes, g * kRuns + run);
          if constexpr (Block::kHasMin) min[run] = scales.Min(s * kLanes, g * kRuns + run);
        }
        HWY_UNROLL(16)
        for (std::size_t t = 0; t < kT; ++t) {
          const ActivationGroup& tx = x[t][at];
          F part = ZeroF();
          for (std::size_t run = 0; run < kRuns; ++run) {
            const std::int32_t sum = kRuns == 1 ? tx.sum : tx.half_sum[run];
            I dot = SetI(Block::kHasMin ? 0 : -kOffset<Block> * sum);
            for (std::size_t c = run * kRunChunks; c < (run + 1) * kRunChunks; c += Dot::kChunks) {
              dot = Dot::AddFrom(dot, codes + c, tx.codes + c * kChunkCols);
            }
            part =
                run == 0 ? Multiply(ToFloat(dot), scale[0]) : Fma(ToFloat(dot), scale[run], part);
          }
          if constexpr (Block::kHasMin) {
            for (std::size_t run = 0; run < kRuns; ++run) {
              const std::int32_t sum = kRuns == 1 ? tx.sum : tx.half_sum[run];
              part = Fma(ToFloat(SetI(sum)), min[run], part);
            }
          }
          acc[s][t] = Fma(part, SetF(tx.scale), acc[s][t]);
        }
      }
    }
    panel += Layout::kRecordBytes;
  }
  for (std::size_t t = 0; t < kT; ++t) {
    for (std::size_t s = 0; s < kStrips; ++s) {
      StoreF(acc[s][t], out + t * kPanelRows + s * kLanes);
    }
  }
}

// All tokens by one panel, kT at a time, then half as many.
template <typename Block, class Dot, std::size_t kT>
void MultiplyTokens(const std::byte* panel, std::size_t cols,
                    std::span<const ActivationGroup* const> tokens, float* out) {
  while (tokens.size() >= kT) {
    MultiplyPanel<Block, Dot, kT>(panel, cols, tokens.data(), out);
    tokens = tokens.subspan(kT);
    out += kT * kPanelRows;
  }
  if constexpr (kT > 1) MultiplyTokens<Block, Dot, kT / 2>(panel, cols, tokens, out);
}

template <typename Block, bool kInstruction>
void MultiplyPanels(const PanelJob& job) {
  const ActivationGroup* tokens[kFewTokens];
  for (std::size_t i = 0; i < job.Tokens(); ++i) tokens[i] = job.x.Groups(job.TokenRow(i));
  const std::size_t panel_stride = job.w.PanelStride();
  for (std::size_t panel = job.first_panel; panel < job.first_panel + job.panel_count; ++panel) {
    alignas(64) float products[kFewTokens * kPanelRows];
    MultiplyTokens<Block, DotFor<Block, kInstruction>, kFewTokens>(
        job.w.data + panel * panel_stride, job.w.cols, {tokens, job.Tokens()}, products);
    job.Store(products, kPanelRows, 0, job.Tokens(), panel * kPanelRows, kPanelRows);
  }
}

void MultiplyFew(const PanelJob& job) {
  WithBlockType(job.w.type, [&]<typename Block>() HWY_ATTR {
    UseDotProduct() ? MultiplyPanels<Block, true>(job) : MultiplyPanels<Block, false>(job);
  });
}

}  // namespace troupe::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe {

HWY_EXPORT(MultiplyFew);
void MultiplyFewTokens(const PanelJob& job) { HWY_DYNAMIC_DISPATCH(MultiplyFew)(job); }

}  // namespace troupe
#endif
