// What the driver in matmul.cc needs to know of a weight type: how to read some columns of a strip,
// what of a token is multiplied, and with which tile. Included once a target; simd.h says why the
// toggle.
#if defined(TROUPE_KERNELS_PANEL_KERNELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_KERNELS_PANEL_KERNELS_INL_H_
#undef TROUPE_KERNELS_PANEL_KERNELS_INL_H_
#else
#define TROUPE_KERNELS_PANEL_KERNELS_INL_H_
#endif

#include "kernels/panel_decode-inl.h"
#include "kernels/panel_tile-inl.h"
#include "kernels/panel_unpack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::HWY_NAMESPACE {

template <typename Block, bool kInstruction>
struct BlockKernel {
  using Layout = PanelLayout<Block>;
  using Strip = UnpackedStrip<kGroupCols / kScaleCols<Block>, Block::kHasMin>;
  using Token = const ActivationGroup*;
  // Two classes of codes, not one a type: fewer functions to compile.
  using CodeDot = Dot<kInstruction, (Block::kMaxCode <= 63 ? 63 : 255)>;
  static_assert(kBlockCols % Block::kElems == 0);

  static Token TokenAt(const Activations& x, std::size_t token) { return x.Groups(token); }

  // Columns [col, col + cols) of rows [lane, lane + kLanes).
  static HWY_INLINE void Read(const std::byte* panel, std::size_t lane, std::size_t col,
                              std::size_t cols, Strip& strip) {
    const std::byte* record = panel + col / Block::kElems * Layout::kRecordBytes;
    for (std::size_t g = 0; g < cols / kGroupCols; g += Layout::kGroups) {
      ReadScales(record, lane, g, strip);
      const std::byte* group = record + Layout::kCodes + lane * kChunkCols;
      for (std::size_t i = 0; i < Layout::kGroups; ++i, group += Layout::kGroupBytes) {
        C codes[kGroupChunks];
        UnpackGroup<Layout::kBits>(group, codes);
        for (std::size_t c = 0; c < kGroupChunks; ++c) StoreC(codes[c], strip.codes[g + i][c]);
      }
      record += Layout::kRecordBytes;
    }
  }

  template <std::size_t kS, std::size_t kT>
  static void Multiply(const Strip* strips, std::size_t col, std::size_t cols, const Token* tokens,
                       float* acc) {
    MultiplyBlockTile<Strip, CodeDot, kS, kT>(strips, cols / kGroupCols, kOffset<Block>, tokens,
                                              col / kGroupCols, acc);
  }

  static void MultiplyByToken(const std::byte* panel, std::size_t cols, Token token, float* out) {
    MultiplyPanelByToken<Block, CodeDot>(panel, cols, token, out);
  }

 private:
  // Of the groups that the record has, group g of the strip being the first.
  static HWY_INLINE void ReadScales(const std::byte* record, std::size_t lane, std::size_t g,
                                    Strip& strip) {
    const ScaleReader<Block> scales(record);
    for (std::size_t run = 0; run < Layout::kGroups * Strip::kRuns; ++run) {
      StoreF(scales.Scale(lane, run), strip.scale[g][0] + run * kLanes);
      if constexpr (Block::kHasMin) {
        StoreF(scales.Min(lane, run), strip.min[g][0] + run * kLanes);
      }
    }
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
                   Strip& strip) {
    strip = panel + col * kColumnBytes + lane * sizeof(Number);
  }

  template <std::size_t kS, std::size_t kT>
  static void Multiply(const Strip* strips, std::size_t col, std::size_t cols, const Token* tokens,
                       float* acc) {
    MultiplyNumberTile<Load, kS, kT>(strips, cols, kColumnBytes, tokens, col, acc);
  }
};

}  // namespace troupe::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
