#include "model/matmul_region.h"

#include <algorithm>

#include "kernels/elementwise.h"
#include "kernels/matmul.h"

namespace troupe {
namespace {

// A task streams about this much weight when it has one token: a few microseconds, so that the last
// task of a region keeps nobody waiting long and taking a task costs nothing beside it.
constexpr std::size_t kTaskBytes = 48 << 10;

}  // namespace

// The bias is added while the products are in the first-level cache.
void MatMulRegion::Product::Run(std::size_t panel, std::size_t panels) const {
  if (combines) return GateUp(w, panel, panels, x, rows, out, stride);
  MatMulPanels(w.gate, panel, panels, x, rows, out, stride);
  if (w.gate_bias == nullptr) return;
  const std::size_t row = panel * kPanelRows;
  const std::size_t count = std::min(panels * kPanelRows, w.gate.rows - row);
  for (std::size_t t = 0; t < Tokens(); ++t) {
    troupe::Add(w.gate_bias + row, out + t * stride + row, count);
  }
}

void MatMulRegion::Push(Product product) {
  const std::size_t matrices = product.w.up.rows > 0 ? 2 : 1;
  // With many tokens the work of a panel grows and the task shrinks, to one panel at least.
  const std::size_t cost = product.w.gate.PanelStride() * matrices * (1 + product.Tokens() / 4);
  product.panels_per_task = std::max<std::size_t>(1, kTaskBytes / cost);
  product.first_task = tasks_;
  tasks_ += product.Tasks();
  products_.push_back(product);
}

void MatMulRegion::Add(const PanelMatrix& w, const Activations& x,
                       std::span<const std::uint32_t> rows, float* out, std::size_t stride,
                       const float* bias) {
  Push({.w = {.gate = w, .up = {}, .gate_bias = bias},
        .combines = false,
        .x = x,
        .rows = rows,
        .out = out,
        .stride = stride});
}

void MatMulRegion::AddGateUp(const GateUpWeights& w, const Activations& x,
                             std::span<const std::uint32_t> rows, float* out, std::size_t stride) {
  Push({.w = w, .combines = true, .x = x, .rows = rows, .out = out, .stride = stride});
}

void MatMulRegion::Run(ThreadPool& pool) {
  pool.Run(tasks_, [this](std::size_t task, std::size_t) {
    const auto after = std::upper_bound(
        products_.begin(), products_.end(), task,
        [](std::size_t t, const Product& product) { return t < product.first_task; });
    const Product& p = *(after - 1);
    const std::size_t first = (task - p.first_task) * p.panels_per_task;
    p.Run(first, std::min(p.panels_per_task, p.w.gate.Panels() - first));
  });
  products_.clear();
  tasks_ = 0;
}

}  // namespace troupe
