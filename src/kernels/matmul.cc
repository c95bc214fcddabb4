// The loops around the tiles of panel_tile-inl.h: blocks of tokens, pairs of strips, blocks of
// columns. See matmul.h and docs/design/panels.md.
#include "kernels/matmul.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/dot_product.h"
#include "kernels/panel_job.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/matmul.cc"
#include "hwy/foreach_target.h"  // compiles this file once per target
#include "hwy/highway.h"
#include "kernels/panel_kernels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::HWY_NAMESPACE {

// Tokens whose sums are kept while the panels go by: weights are unpacked once for all of them.
inline constexpr std::size_t kTokenBlock = 64;

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

// kS strips from number `strip` of the matrix on.
template <class Kernel, std::size_t kS>
void MultiplyStrips(const PanelJob& job, std::size_t strip,
                    std::span<const typename Kernel::Token> tokens, float* out) {
  alignas(64) float acc[kTokenBlock * kAccStride];
  std::fill_n(acc, tokens.size() * kAccStride, 0.0f);
  typename Kernel::Strip strips[kS];
  const std::size_t panel_stride = job.w.PanelStride();
  for (std::size_t col = 0; col < job.w.cols; col += kBlockCols) {
    const std::size_t cols = std::min(kBlockCols, job.w.cols - col);
    for (std::size_t s = 0; s < kS; ++s) {
      const std::byte* panel = job.w.data + (strip + s) / kStrips * panel_stride;
      Kernel::Read(panel, (strip + s) % kStrips * kLanes, col, cols, strips[s]);
    }
    MultiplyTokens<Kernel, kS, kTileTokens>(strips, col, cols, tokens, acc);
  }
  const std::size_t row = strip * kLanes;
  const std::size_t rows = std::min(kS * kLanes, job.w.rows - std::min(job.w.rows, row));
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    std::copy_n(acc + t * kAccStride, rows, out + t * job.out_stride + row - job.first_row);
  }
}

template <class Kernel>
void MultiplyPanelsByToken(const PanelJob& job) {
  const auto token = Kernel::TokenAt(job.x, job.TokenRow(0));
  const std::size_t panel_stride = job.w.PanelStride();
  for (std::size_t panel = job.first_panel; panel < job.first_panel + job.panel_count; ++panel) {
    alignas(64) float products[kPanelRows];
    Kernel::MultiplyByToken(job.w.data + panel * panel_stride, job.w.cols, token, products);
    const std::size_t row = panel * kPanelRows;
    std::copy_n(products, std::min(kPanelRows, job.w.rows - row), job.out + row - job.first_row);
  }
}

template <class Kernel>
void MultiplyPanels(const PanelJob& job) {
  if constexpr (requires { Kernel::MultiplyByToken; }) {
    if (job.Tokens() == 1) return MultiplyPanelsByToken<Kernel>(job);
  }
  const std::size_t end = (job.first_panel + job.panel_count) * kStrips;
  for (std::size_t first = 0; first < job.Tokens(); first += kTokenBlock) {
    typename Kernel::Token tokens[kTokenBlock];
    const std::size_t count = std::min(kTokenBlock, job.Tokens() - first);
    for (std::size_t i = 0; i < count; ++i) {
      tokens[i] = Kernel::TokenAt(job.x, job.TokenRow(first + i));
    }
    const std::span<const typename Kernel::Token> block(tokens, count);
    float* out = job.out + first * job.out_stride;
    std::size_t strip = job.first_panel * kStrips;
    for (; strip + 2 <= end; strip += 2) MultiplyStrips<Kernel, 2>(job, strip, block, out);
    if (strip < end) MultiplyStrips<Kernel, 1>(job, strip, block, out);
  }
}

template <bool kInstruction>
void MultiplyBlockPanels(const PanelJob& job) {
  WithBlockType(job.w.type, [&]<typename Block>() HWY_ATTR {
    MultiplyPanels<BlockKernel<Block, kInstruction>>(job);
  });
}

void MatMul(const PanelJob& job) {
  switch (job.w.type) {
    case TensorType::kF32:
      return MultiplyPanels<NumberKernel<float, LoadF>>(job);
    case TensorType::kF16:
      return MultiplyPanels<NumberKernel<std::uint16_t, LoadHalves>>(job);
    case TensorType::kBF16:
      return MultiplyPanels<NumberKernel<std::uint16_t, LoadBf16>>(job);
    default:
      return UseDotProduct() ? MultiplyBlockPanels<true>(job) : MultiplyBlockPanels<false>(job);
  }
}

// gate[i] = silu(gate[i]) * up[i]; n is a multiple of kLanes.
void CombineGate(const float* up, std::size_t n, float* gate) {
  for (std::size_t i = 0; i < n; i += kLanes) {
    StoreF(SiluTimes(LoadF(gate + i), LoadF(up + i)), gate + i);
  }
}

}  // namespace troupe::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe {
namespace {

HWY_EXPORT(MatMul);
HWY_EXPORT(CombineGate);

void CheckJob(const PanelJob& job) {
  TROUPE_CHECK(job.w.cols == job.x.cols);
  TROUPE_CHECK(job.first_panel + job.panel_count <= job.w.Panels());
  TROUPE_CHECK(Info(job.w.type).block_elems == 1 || job.x.groups != nullptr);
}

}  // namespace

void MatMulPanels(const PanelMatrix& w, std::size_t first_panel, std::size_t panel_count,
                  const Activations& x, std::span<const std::uint32_t> token_rows, float* out,
                  std::size_t out_stride) {
  const PanelJob job{w, first_panel, panel_count, x, token_rows, out, out_stride};
  CheckJob(job);
  HWY_DYNAMIC_DISPATCH(MatMul)(job);
}

void GateUpSilu(const PanelMatrix& gate, const PanelMatrix& up, std::size_t first_panel,
                std::size_t panel_count, const Activations& x,
                std::span<const std::uint32_t> token_rows, float* out, std::size_t out_stride) {
  TROUPE_CHECK(gate.rows == up.rows);
  // A piece of both products that stays in the L1 cache between its making and its use.
  constexpr std::size_t kPanels = 2, kTokens = 64, kRows = kPanels * kPanelRows;
  alignas(64) float gates[kTokens * kRows], ups[kTokens * kRows];
  std::uint32_t rows[kTokens];
  PanelJob job{gate, 0, 0, x, {}, nullptr, kRows};
  const std::size_t tokens = token_rows.empty() ? x.tokens : token_rows.size();
  for (std::size_t token = 0; token < tokens; token += kTokens) {
    const std::size_t count = std::min(kTokens, tokens - token);
    for (std::size_t i = 0; i < count; ++i) {
      rows[i] = token_rows.empty() ? static_cast<std::uint32_t>(token + i) : token_rows[token + i];
    }
    job.token_rows = std::span(rows, count);
    // Rows past the last one of the matrix keep these zeros.
    std::fill_n(gates, count * kRows, 0.0f);
    std::fill_n(ups, count * kRows, 0.0f);
    for (std::size_t panel = 0; panel < panel_count; panel += kPanels) {
      job.first_panel = first_panel + panel;
      job.panel_count = std::min(kPanels, panel_count - panel);
      job.first_row = job.first_panel * kPanelRows;
      job.w = gate;
      job.out = gates;
      CheckJob(job);
      HWY_DYNAMIC_DISPATCH(MatMul)(job);
      job.w = up;
      job.out = ups;
      CheckJob(job);
      HWY_DYNAMIC_DISPATCH(MatMul)(job);
      HWY_DYNAMIC_DISPATCH(CombineGate)(ups, count * kRows, gates);
      const std::size_t columns = std::min(job.panel_count * kPanelRows, gate.rows - job.first_row);
      for (std::size_t i = 0; i < count; ++i) {
        std::copy_n(gates + i * kRows, columns, out + (token + i) * out_stride + job.first_row);
      }
    }
  }
}

}  // namespace troupe
#endif
