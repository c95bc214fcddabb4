// Many tokens, and plain numbers of any: the speed is that of multiplying. Pairs of strips (kLanes
// rows of a panel each) are unpacked 256 columns at a time and multiplied with a block of tokens in
// tiles (panel_tile-inl.h), while the sums of the block and the unpacked weights stay in L1.
#include "kernels/dot_product.h"
#include "kernels/matmul_parts.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/matmul_many.cc"
#include "hwy/foreach_target.h"  // compiles this file once per target
#include "hwy/highway.h"
#include "kernels/panel_tile-inl.h"
#include "kernels/panel_unpack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::HWY_NAMESPACE {

// Tokens whose sums are kept while the panels go by: weights are unpacked once for all of them.
inline constexpr std::size_t kTokenBlock = 64;

// What the loops below need to know of a weight type: what of a token is multiplied, how some
// columns of a strip are read, and which tile multiplies them.

template <typename Block, bool kInstruction>
struct BlockKernel {
  using Layout = PanelLayout<Block>;
  using Strip = UnpackedStrip<kGroupCols / kScaleCols<Block>, Block::kHasMin>;
  using Token = const ActivationGroup*;
  static_assert(kBlockCols % Block::kElems == 0);

  static Token TokenAt(const Activations& x, std::size_t token) { return x.Groups(token); }

  // Columns [col, col + cols) of rows [lane, lane + kLanes); the bytes read next are `ahead` away.
  static HWY_INLINE void Read(const std::byte* panel, std::size_t lane, std::size_t col,
                              std::size_t cols, std::size_t ahead, Strip& strip) {
    const std::byte* record = panel + col / Block::kElems * Layout::kRecordBytes;
    for (std::size_t g = 0; g < cols / kGroupCols; g += Layout::kGroups) {
      const RecordScales<Block> scales(record);
      for (std::size_t run = 0; run < Layout::kGroups * Strip::kRuns; ++run) {
        StoreF(scales.Scale(lane, run), strip.scale[g][0] + run * kLanes);
        if constexpr (Block::kHasMin) {
          StoreF(scales.Min(lane, run), strip.min[g][0] + run * kLanes);
        }
      }
      Prefetch<Layout::kCodes>(record, ahead);
      const std::byte* group = record + Layout::kCodes;
      for (std::size_t i = 0; i < Layout::kGroups; ++i, group += Layout::kGroupBytes) {
        Prefetch<Layout::kGroupBytes>(group, ahead);
        C codes[kGroupChunks];
        UnpackGroup<Layout::kBits>(group + lane * kChunkCols, codes);
        for (std::size_t c = 0; c < kGroupChunks; ++c) StoreC(codes[c], strip.codes[g + i][c]);
      }
      record += Layout::kRecordBytes;
    }
  }

  template <std::size_t kS, std::size_t kT>
  static void Multiply(const Strip* strips, std::size_t col, std::size_t cols, const Token* tokens,
                       float* acc) {
    MultiplyBlockTile<Strip, DotFor<Block, kInstruction>, kS, kT>(
        strips, cols / kGroupCols, kOffset<Block>, tokens, col / kGroupCols, acc);
  }
};

// F32, F16, BF16: read in place.
template <typename Number, F (*Load)(const std::byte*)>
struct NumberKernel {
  using Strip = const std::byte*;
  using Token = const float*;
  static constexpr std::size_t kColumnBytes = kPanelRows * sizeof(Number);

  static Token TokenAt(const Activations& x, std::size_t token) { return x.Values(token); }

  static void Read(const std::byte* panel, std::size_t lane, std::size_t col, std::size_t,
                   std::size_t, Strip& strip) {
    strip = panel + col * kColumnBytes + lane * sizeof(Number);
  }

  template <std::size_t kS, std::size_t kT>
  static void Multiply(const Strip* strips, std::size_t col, std::size_t cols, const Token* tokens,
                       float* acc) {
    MultiplyNumberTile<Load, kS, kT>(strips, cols, kColumnBytes, tokens, col, acc);
  }
};

// All tokens of a block over one block of columns, in tiles of kT, then of half as many.
template <class Kernel, std::size_t kS, std::size_t kT>
void MultiplyTokens(const typename Kernel::Strip* strips, std::size_t col, std::size_t cols,
                    std::span<const typename Kernel::Token> tokens, float* acc) {
  while (tokens.size() >= kT) {
    Kernel::template Multiply<kS, kT>(strips, col, cols, tokens.data(), acc);
    tokens = tokens.subspan(kT);
    acc += kT * kAccStride;
  }
  if constexpr (kT > 1) MultiplyTokens<Kernel, kS, kT / 2>(strips, col, cols, tokens, acc);
}

// kS strips from number `strip` of the matrix on, for the tokens from `first_token` on.
template <class Kernel, std::size_t kS>
void MultiplyStrips(const PanelJob& job, std::size_t strip, std::size_t first_token,
                    std::span<const typename Kernel::Token> tokens) {
  alignas(64) float acc[kTokenBlock * kAccStride];
  std::fill_n(acc, tokens.size() * kAccStride, 0.0f);
  typename Kernel::Strip strips[kS];
  const std::size_t panel_stride = job.w.PanelStride();
  const std::size_t block_bytes = panel_stride * kBlockCols / job.w.cols;
  for (std::size_t col = 0; col < job.w.cols; col += kBlockCols) {
    const std::size_t cols = std::min(kBlockCols, job.w.cols - col);
    // The same columns' successors, or the first of the panels that come next.
    const std::size_t ahead =
        col + cols < job.w.cols
            ? block_bytes
            : (kS + kStrips - 1) / kStrips * panel_stride - col / kBlockCols * block_bytes;
    for (std::size_t s = 0; s < kS; ++s) {
      const std::byte* panel = job.w.data + (strip + s) / kStrips * panel_stride;
      Kernel::Read(panel, (strip + s) % kStrips * kLanes, col, cols, ahead, strips[s]);
    }
    MultiplyTokens<Kernel, kS, kTileTokens>(strips, col, cols, tokens, acc);
  }
  job.Store(acc, kAccStride, first_token, tokens.size(), strip * kLanes, kS * kLanes);
}

template <class Kernel>
void MultiplyPanels(const PanelJob& job) {
  const std::size_t end = (job.first_panel + job.panel_count) * kStrips;
  for (std::size_t first = 0; first < job.Tokens(); first += kTokenBlock) {
    typename Kernel::Token tokens[kTokenBlock];
    const std::size_t count = std::min(kTokenBlock, job.Tokens() - first);
    for (std::size_t i = 0; i < count; ++i) {
      tokens[i] = Kernel::TokenAt(job.x, job.TokenRow(first + i));
    }
    std::size_t strip = job.first_panel * kStrips;
    for (; strip + 2 <= end; strip += 2) {
      MultiplyStrips<Kernel, 2>(job, strip, first, {tokens, count});
    }
    if (strip < end) MultiplyStrips<Kernel, 1>(job, strip, first, {tokens, count});
  }
}

void MultiplyMany(const PanelJob& job) {
  switch (job.w.type) {
    case TensorType::kF32:
      return MultiplyPanels<NumberKernel<float, LoadF>>(job);
    case TensorType::kF16:
      return MultiplyPanels<NumberKernel<std::uint16_t, LoadHalves>>(job);
    case TensorType::kBF16:
      return MultiplyPanels<NumberKernel<std::uint16_t, LoadBf16>>(job);
    default:
      break;
  }
  WithBlockType(job.w.type, [&]<typename Block>() HWY_ATTR {
    UseDotProduct() ? MultiplyPanels<BlockKernel<Block, true>>(job)
                    : MultiplyPanels<BlockKernel<Block, false>>(job);
  });
}

}  // namespace troupe::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe {

HWY_EXPORT(MultiplyMany);
void MultiplyManyTokens(const PanelJob& job) { HWY_DYNAMIC_DISPATCH(MultiplyMany)(job); }

}  // namespace troupe
#endif
