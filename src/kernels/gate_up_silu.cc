// The two products of a feed-forward block's first half and their combination, piece by piece, so
// that the products never leave the L1 cache. See matmul.h.
#include "base/check.h"
#include "kernels/matmul.h"
#include "kernels/matmul_parts.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gate_up_silu.cc"
#include "hwy/foreach_target.h"  // compiles this file once per target
#include "hwy/highway.h"
#include "kernels/panel_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::HWY_NAMESPACE {

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

HWY_EXPORT(CombineGate);

void GateUpSilu(const PanelMatrix& gate, const PanelMatrix& up, std::size_t first_panel,
                std::size_t panel_count, const Activations& x,
                std::span<const std::uint32_t> token_rows, float* out, std::size_t out_stride) {
  TROUPE_CHECK(gate.rows == up.rows);
  constexpr std::size_t kPanels = 2, kTokens = 64, kRows = kPanels * kPanelRows;
  alignas(64) float gates[kTokens * kRows], ups[kTokens * kRows];
  std::uint32_t rows[kTokens];
  const std::size_t tokens = token_rows.empty() ? x.tokens : token_rows.size();
  for (std::size_t token = 0; token < tokens; token += kTokens) {
    const std::size_t count = std::min(kTokens, tokens - token);
    for (std::size_t i = 0; i < count; ++i) {
      rows[i] = token_rows.empty() ? static_cast<std::uint32_t>(token + i) : token_rows[token + i];
    }
    // Rows past the last one of the matrix keep these zeros.
    std::fill_n(gates, count * kRows, 0.0f);
    std::fill_n(ups, count * kRows, 0.0f);
    for (std::size_t i = 0; i < panel_count; i += kPanels) {
      const std::size_t panel = first_panel + i, panels = std::min(kPanels, panel_count - i);
      const std::size_t row = panel * kPanelRows;
      MultiplyPanelJob({gate, panel, panels, x, {rows, count}, gates, kRows, row});
      MultiplyPanelJob({up, panel, panels, x, {rows, count}, ups, kRows, row});
      HWY_DYNAMIC_DISPATCH(CombineGate)(ups, count * kRows, gates);
      const PanelJob whole{gate, panel, panels, x, {}, out, out_stride};
      whole.Store(gates, kRows, token, count, row, panels * kPanelRows);
    }
  }
}

}  // namespace troupe
#endif
