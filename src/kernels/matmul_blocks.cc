// Block-quantized weights by 8-bit activations. Panels are gone through from the first byte to the
// last, lines are asked for ahead of their use, and codes go from registers straight into the
// products of up to eight tokens: one token is as fast as memory, eight cost little more than one.
#include "kernels/dot_product.h"
#include "kernels/matmul_parts.h"
#include "kernels/panel_prefetch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/matmul_blocks.cc"
#include "hwy/foreach_target.h"  // compiles this file once per target
#include "hwy/highway.h"
#include "kernels/panel_dot-inl.h"
#include "kernels/panel_unpack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::HWY_NAMESPACE {

// Tokens that share one reading of a panel's codes. Without vectors nothing stays in registers.
inline constexpr std::size_t kTileTokens = HWY_TARGET == HWY_SCALAR ? 1 : 8;

// Tokens that share one reading of the panels from memory. Theirs are the activations that should
// stay in a core's L2 cache: 384 KiB for 4096 columns.
inline constexpr std::size_t kTokenBlock = 64;

// t of quant/panel_reference.h: what a group of 32 columns adds, before the activations' scale;
// x[t] is the group of a token.
template <typename Block, class Dot>
struct Group {
  static constexpr std::size_t kRuns = kGroupRuns<Block>;
  static constexpr std::size_t kRunChunks = kGroupChunks / kRuns;

  static HWY_INLINE std::int32_t Sum(const ActivationGroup& x, std::size_t run) {
    return kRuns == 1 ? x.sum : x.half_sum[run];
  }
  static HWY_INLINE I FirstDot(const ActivationGroup& x, std::size_t run) {
    return SetI(Block::kHasMin ? 0 : -kOffset<Block, Dot> * Sum(x, run));
  }
  static HWY_INLINE F AddRun(F t, std::size_t run, I dot, const F* scale) {
    return run == 0 ? Multiply(ToFloat(dot), scale[0]) : Fma(ToFloat(dot), scale[run], t);
  }
  static HWY_INLINE F AddMins(F t, const ActivationGroup& x, const F* min) {
    if constexpr (Block::kHasMin) {
      for (std::size_t run = 0; run < kRuns; ++run)
        t = Fma(ToFloat(SetI(Sum(x, run))), min[run], t);
    }
    return t;
  }

  // Where the codes stay in registers: one token after the other.
  static HWY_INLINE F Product(const C (&codes)[kGroupChunks], const F* scale, const F* min,
                              const ActivationGroup& x) {
    F t = ZeroF();
    for (std::size_t run = 0; run < kRuns; ++run) {
      I dot = FirstDot(x, run);
      for (std::size_t c = run * kRunChunks; c < (run + 1) * kRunChunks; c += Dot::kChunks) {
        dot = Dot::Add(dot, codes + c, x.codes + c * kChunkCols);
      }
      t = AddRun(t, run, dot, scale);
    }
    return AddMins(t, x, min);
  }

  // Where they do not: the sums of all tokens do.
  template <std::size_t kT>
  static HWY_INLINE void Products(const C (&codes)[kGroupChunks], const F* scale, const F* min,
                                  const ActivationGroup* const (&x)[kT], F (&products)[kT]) {
    for (std::size_t run = 0; run < kRuns; ++run) {
      const std::size_t first = run * kRunChunks;
      const std::int8_t* run_codes[kT];
      I dot[kT];
      HWY_UNROLL(8)
      for (std::size_t t = 0; t < kT; ++t) {
        run_codes[t] = x[t]->codes + first * kChunkCols;
        dot[t] = FirstDot(*x[t], run);
      }
      Dot::template AddAll<kRunChunks>(dot, codes + first, run_codes);
      HWY_UNROLL(8)
      for (std::size_t t = 0; t < kT; ++t) products[t] = AddRun(products[t], run, dot[t], scale);
    }
    HWY_UNROLL(8)
    for (std::size_t t = 0; t < kT; ++t) products[t] = AddMins(products[t], *x[t], min);
  }
};

// One panel by kT tokens, to out[t * kPanelRows + row]. The loops over sums are unrolled by hand
// because GCC otherwise does it too late to keep the sums in registers.
template <typename Block, class Dot, std::size_t kT>
HWY_NOINLINE void MultiplyPanel(const std::byte* HWY_RESTRICT panel, std::size_t cols,
                                const ActivationGroup* const* HWY_RESTRICT tokens,
                                float* HWY_RESTRICT out) {
  using Layout = PanelLayout<Block>;
  constexpr std::size_t kRuns = kGroupRuns<Block>;
  const ActivationGroup* x[kT];
  F acc[kStrips][kT];
  HWY_UNROLL(16)
  for (std::size_t t = 0; t < kT; ++t) {
    x[t] = tokens[t];
    HWY_UNROLL(4)
    for (std::size_t s = 0; s < kStrips; ++s) acc[s][t] = ZeroF();
  }
  std::size_t at = 0;  // the group in x
  for (std::size_t col = 0; col < cols; col += Block::kElems, panel += Layout::kRecordBytes) {
    Prefetch<Layout::kCodes>(panel);
    const RecordScales<Block> scales(panel);
    const std::byte* group = panel + Layout::kCodes;
    for (std::size_t g = 0; g < Layout::kGroups; ++g, ++at, group += Layout::kGroupBytes) {
      Prefetch<Layout::kGroupBytes>(group);
      HWY_UNROLL(4)
      for (std::size_t s = 0; s < kStrips; ++s) {
        C codes[kGroupChunks];
        UnpackGroup<Block, Dot>(group, s * kLanes, codes);
        F scale[kRuns], min[kRuns];
        for (std::size_t run = 0; run < kRuns; ++run) {
          scale[run] = scales.Scale(s * kLanes, g * kRuns + run);
          min[run] = scales.Min(s * kLanes, g * kRuns + run);
        }
        if constexpr (Dot::kTogether) {
          const ActivationGroup* here[kT];
          F products[kT];
          HWY_UNROLL(16)
          for (std::size_t t = 0; t < kT; ++t) here[t] = x[t] + at;
          Group<Block, Dot>::Products(codes, scale, min, here, products);
          HWY_UNROLL(16)
          for (std::size_t t = 0; t < kT; ++t) {
            acc[s][t] = Fma(products[t], SetF(here[t]->scale), acc[s][t]);
          }
          // So that the next strip reads the activations again: there are no registers to keep
          // those of many tokens.
          if constexpr (kT > 2) asm volatile("" ::: "memory");
        } else {
          HWY_UNROLL(16)
          for (std::size_t t = 0; t < kT; ++t) {
            const F product = Group<Block, Dot>::Product(codes, scale, min, x[t][at]);
            acc[s][t] = Fma(product, SetF(x[t][at].scale), acc[s][t]);
          }
        }
      }
    }
  }
  HWY_UNROLL(16)
  for (std::size_t t = 0; t < kT; ++t) {
    HWY_UNROLL(4)
    for (std::size_t s = 0; s < kStrips; ++s) {
      StoreF(acc[s][t], out + t * kPanelRows + s * kLanes);
    }
  }
}

// One panel by all tokens, kT at a time, then half as many.
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

template <typename Block, class Dot>
void MultiplyPanels(const PanelJob& job) {
  const std::size_t panel_stride = job.w.PanelStride();
  for (std::size_t first = 0; first < job.Tokens(); first += kTokenBlock) {
    const ActivationGroup* tokens[kTokenBlock];
    const std::size_t count = std::min(kTokenBlock, job.Tokens() - first);
    for (std::size_t i = 0; i < count; ++i) tokens[i] = job.x.Groups(job.TokenRow(first + i));
    for (std::size_t i = 0; i < job.panel_count; ++i) {
      const std::size_t panel = job.first_panel + i;
      alignas(64) float products[kTokenBlock * kPanelRows];
      MultiplyTokens<Block, Dot, kTileTokens>(job.w.data + panel * panel_stride, job.w.cols,
                                              {tokens, count}, products);
      job.Store(products, kPanelRows, first, count, panel * kPanelRows, kPanelRows);
    }
  }
}

void MultiplyBlocks(const PanelJob& job) {
  WithBlockType(job.w.type, [&]<typename Block>() HWY_ATTR {
    if constexpr (kHasDotInstruction) {
      if (UseDotProduct()) return MultiplyPanels<Block, Dot<true, DotCodes<Block>::kMost>>(job);
    }
    MultiplyPanels<Block, Dot<false, DotCodes<Block>::kMost>>(job);
  });
}

}  // namespace troupe::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe {

HWY_EXPORT(MultiplyBlocks);
void MultiplyBlockPanels(const PanelJob& job) { HWY_DYNAMIC_DISPATCH(MultiplyBlocks)(job); }

}  // namespace troupe
#endif
