// One call of a matrix product as matmul.cc hands it to the code of a target.
#pragma once

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
};

}  // namespace troupe
