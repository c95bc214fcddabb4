// Checks a product and sends it to the code for its type. See matmul.h.
#include "kernels/matmul.h"

#include "base/check.h"
#include "kernels/matmul_parts.h"

namespace troupe {

void MultiplyPanelJob(const PanelJob& job) {
  const bool blocks = Info(job.w.type).block_elems > 1;
  TROUPE_CHECK(job.w.cols == job.x.cols);
  TROUPE_CHECK(job.first_panel + job.panel_count <= job.w.Panels());
  TROUPE_CHECK(!blocks || job.x.groups != nullptr);
  if (blocks) {
    MultiplyBlockPanels(job);
  } else {
    MultiplyNumberPanels(job);
  }
}

void MatMulPanels(const PanelMatrix& w, std::size_t first_panel, std::size_t panel_count,
                  const Activations& x, std::span<const std::uint32_t> token_rows, float* out,
                  std::size_t out_stride) {
  MultiplyPanelJob({w, first_panel, panel_count, x, token_rows, out, out_stride});
}

}  // namespace troupe
