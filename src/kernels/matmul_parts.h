// The implementation of matmul.h: a call of a product as one value, and the two kinds of products,
// each compiled for every target in a file of its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "quant/activations.h"
#include "quant/panel.h"

namespace troupe {

struct PanelJob {
  PanelMatrix w;
  std::size_t first_panel = 0;
  std::size_t panel_count = 0;
  const Activations& x;
  std::span<const std::uint32_t> token_rows;  // empty: all tokens of x
  float* out = nullptr;                       // out[token * out_stride + row - first_row]
  std::size_t out_stride = 0;
  std::size_t first_row = 0;

  std::size_t Tokens() const { return token_rows.empty() ? x.tokens : token_rows.size(); }
  std::size_t TokenRow(std::size_t i) const { return token_rows.empty() ? i : token_rows[i]; }

  // Copies products[token][row of `rows`] of `tokens` tokens to the output, times the matrix's
  // factor, without the rows that only fill up the last panel.
  void Store(const float* products, std::size_t stride, std::size_t first_token, std::size_t tokens,
             std::size_t row, std::size_t rows) const {
    rows = std::min(rows, w.rows - std::min(w.rows, row));
    float* to = out + first_token * out_stride + (row - first_row);
    for (std::size_t t = 0; t < tokens; ++t) {
      const float* const from = products + t * stride;
      if (w.factor == nullptr) {
        std::copy_n(from, rows, to + t * out_stride);
      } else {
        for (std::size_t r = 0; r < rows; ++r) to[t * out_stride + r] = *w.factor * from[r];
      }
    }
  }
};

// Rows of both products of a feed-forward's first half that are combined at a time, for some
// tokens: rows of kGateRows numbers, combined in place of the gates.
inline constexpr std::size_t kGateRows = 2 * kPanelRows;
struct GateTile {
  float* gates;
  const float* ups;
  std::size_t tokens;
  const float* gate_bias;  // kGateRows numbers, or null
  const float* up_bias;
};

// Checks the call and passes it on.
void MultiplyPanelJob(const PanelJob& job);

void MultiplyBlockPanels(const PanelJob& job);   // matmul_blocks.cc
void MultiplyNumberPanels(const PanelJob& job);  // matmul_numbers.cc

}  // namespace troupe
