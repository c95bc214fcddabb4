#include "model/matmul_region.h"

#include <algorithm>

#include "kernels/matmul.h"

namespace troupe {
namespace {

// A task streams about this much weight when it has one token: a few microseconds, so that the last
// task of a region keeps nobody waiting long and taking a task costs nothing beside it.
constexpr std::size_t kTaskBytes = 48 << 10;

}  // namespace

void MatMulRegion::Push(Product product) {
  const std::size_t matrices = product.second.data == nullptr ? 1 : 2;
  const std::size_t tokens = product.rows.empty() ? product.x.tokens : product.rows.size();
  // With many tokens the work of a panel grows and the task shrinks, to one panel at least.
  const std::size_t cost = product.first.PanelStride() * matrices * (1 + tokens / 4);
  product.panels_per_task = std::max<std::size_t>(1, kTaskBytes / cost);
  product.first_task = tasks_;
  tasks_ += product.Tasks();
  products_.push_back(product);
}

void MatMulRegion::Add(const PanelMatrix& w, const Activations& x,
                       std::span<const std::uint32_t> rows, float* out, std::size_t stride) {
  Push({.first = w, .second = {}, .x = x, .rows = rows, .out = out, .stride = stride});
}

void MatMulRegion::AddGateUp(const PanelMatrix& gate, const PanelMatrix& up, const Activations& x,
                             std::span<const std::uint32_t> rows, float* out, std::size_t stride) {
  Push({.first = gate, .second = up, .x = x, .rows = rows, .out = out, .stride = stride});
}

void MatMulRegion::Run(ThreadPool& pool) {
  pool.Run(tasks_, [this](std::size_t task, std::size_t) {
    const auto after = std::upper_bound(
        products_.begin(), products_.end(), task,
        [](std::size_t t, const Product& product) { return t < product.first_task; });
    const Product& p = *(after - 1);
    const std::size_t first = (task - p.first_task) * p.panels_per_task;
    const std::size_t count = std::min(p.panels_per_task, p.first.Panels() - first);
    if (p.second.data == nullptr) {
      MatMulPanels(p.first, first, count, p.x, p.rows, p.out, p.stride);
    } else {
      GateUpSilu(p.first, p.second, first, count, p.x, p.rows, p.out, p.stride);
    }
  });
  products_.clear();
  tasks_ = 0;
}

}  // namespace troupe
