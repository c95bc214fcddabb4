// Products of packed weights (quant/panel.h) with the activations of one or many tokens. Every
// result is the float operations of quant/panel_reference.h in their order: the same bits on every
// target, for one token as for a thousand, however the panels are shared among threads.
//
// One thread, no allocation: callers spread ranges of panels over their threads. How it is done and
// how fast it is: docs/design/panels.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "quant/activations.h"
#include "quant/gate_reference.h"
#include "quant/panel.h"

namespace troupe {

// out[i * out_stride + row] = row of w times token token_rows[i], for all rows in panels
// [first_panel, first_panel + panel_count); rows past w.rows are not written. Empty token_rows
// stands for all tokens of x. Where w has a factor, fl(that * factor). x.cols is w.cols, and
// block-quantized weights need the 8-bit form.
void MatMulPanels(const PanelMatrix& w, std::size_t first_panel, std::size_t panel_count,
                  const Activations& x, std::span<const std::uint32_t> token_rows, float* out,
                  std::size_t out_stride);

// The first half of a feed-forward block: gate and up have the same shape; their types may differ.
// Of a form that takes one product alone, up has no rows.
struct GateUpWeights {
  PanelMatrix gate, up;
  const float* gate_bias = nullptr;  // a number a row; null: none
  const float* up_bias = nullptr;
  GateForm form = GateForm::kSilu;
};

// The same with out = GateReference(form, fl(gate * x + gate_bias), fl(up * x + up_bias)) of
// quant/gate_reference.h.
void GateUp(const GateUpWeights& w, std::size_t first_panel, std::size_t panel_count,
            const Activations& x, std::span<const std::uint32_t> token_rows, float* out,
            std::size_t out_stride);

}  // namespace troupe
