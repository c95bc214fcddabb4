// The two products of a feed-forward block's first half, or the only one, and their combination,
// piece by piece, so that the products never leave the L1 cache. See matmul.h.
#include "base/check.h"
#include "kernels/matmul.h"
#include "kernels/matmul_parts.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gate_up.cc"
#include "hwy/foreach_target.h"  // compiles this file once per target
#include "hwy/highway.h"
#include "kernels/panel_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::HWY_NAMESPACE {

template <class Combine>
HWY_INLINE void CombineRows(const GateTile& tile, Combine&& combine) {
  for (std::size_t t = 0; t < tile.tokens; ++t) {
    float* const gates = tile.gates + t * kGateRows;
    const float* const ups = tile.ups + t * kGateRows;
    for (std::size_t row = 0; row < kGateRows; row += kLanes) {
      F gate = LoadF(gates + row), up = LoadF(ups + row);
      if (tile.gate_bias != nullptr) gate = AddF(gate, LoadF(tile.gate_bias + row));
      if (tile.up_bias != nullptr) up = AddF(up, LoadF(tile.up_bias + row));
      StoreF(combine(gate, up), gates + row);
    }
  }
}

void CombineTile(GateForm form, const GateTile& tile) {
  if (form == GateForm::kSilu) {
    CombineRows(tile, [](F gate, F up) HWY_ATTR { return SiluTimes(gate, up); });
  } else if (form == GateForm::kGelu) {
    CombineRows(tile, [](F gate, F up) HWY_ATTR { return GeluTimes(gate, up); });
  } else if (form == GateForm::kRelu) {
    CombineRows(tile, [](F gate, F) HWY_ATTR { return Relu(gate); });
  } else if (form == GateForm::kSquaredRelu) {
    CombineRows(tile, [](F gate, F) HWY_ATTR { return SquaredRelu(gate); });
  } else {
    CombineRows(tile, [](F gate, F up) HWY_ATTR { return ClampedTimes(gate, up); });
  }
}

}  // namespace troupe::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe {

HWY_EXPORT(CombineTile);

void GateUp(const GateUpWeights& w, std::size_t first_panel, std::size_t panel_count,
            const Activations& x, std::span<const std::uint32_t> token_rows, float* out,
            std::size_t out_stride) {
  const bool takes_up = TakesUp(w.form);
  TROUPE_CHECK(w.up.rows == (takes_up ? w.gate.rows : 0));
  constexpr std::size_t kPanels = kGateRows / kPanelRows, kTokens = 64;
  alignas(64) float gates[kTokens * kGateRows], ups[kTokens * kGateRows];
  alignas(64) float gate_bias[kGateRows], up_bias[kGateRows];
  std::uint32_t rows[kTokens];
  const std::size_t tokens = token_rows.empty() ? x.tokens : token_rows.size();
  for (std::size_t token = 0; token < tokens; token += kTokens) {
    const std::size_t count = std::min(kTokens, tokens - token);
    for (std::size_t i = 0; i < count; ++i) {
      rows[i] = token_rows.empty() ? static_cast<std::uint32_t>(token + i) : token_rows[token + i];
    }
    // Rows past the last one of the matrix keep these zeros.
    std::fill_n(gates, count * kGateRows, 0.0f);
    std::fill_n(ups, count * kGateRows, 0.0f);
    for (std::size_t i = 0; i < panel_count; i += kPanels) {
      const std::size_t panel = first_panel + i, panels = std::min(kPanels, panel_count - i);
      const std::size_t row = panel * kPanelRows;
      const std::size_t real_rows = std::min(panels * kPanelRows, w.gate.rows - row);
      const auto part_of = [&](const float* bias, float* part) -> const float* {
        if (bias == nullptr) return nullptr;
        std::fill(std::copy_n(bias + row, real_rows, part), part + kGateRows, 0.0f);
        return part;
      };
      MultiplyPanelJob({w.gate, panel, panels, x, {rows, count}, gates, kGateRows, row});
      if (takes_up) MultiplyPanelJob({w.up, panel, panels, x, {rows, count}, ups, kGateRows, row});
      HWY_DYNAMIC_DISPATCH(CombineTile)
      (w.form, {.gates = gates,
                .ups = ups,
                .tokens = count,
                .gate_bias = part_of(w.gate_bias, gate_bias),
                .up_bias = part_of(w.up_bias, up_bias)});
      PanelJob whole{w.gate, panel, panels, x, {}, out, out_stride};
      whole.w.factor = nullptr;  // the gates have it already
      whole.Store(gates, kGateRows, token, count, row, panels * kPanelRows);
    }
  }
}

}  // namespace troupe
#endif
