// Matrix products that may run at the same time, cut into tasks of like cost for one parallel
// region: the projections of queries, keys and values; the experts of a layer. The result does not
// depend on the cut, as kernels/matmul.h promises, so threads only decide how fast it comes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "model/weights.h"
#include "quant/activations.h"
#include "quant/panel.h"

namespace troupe {

class MatMulRegion {
 public:
  // out[i] = w x[rows[i]], for all tokens of x if rows is empty; row i at out + i * stride.
  void Add(const PanelMatrix& w, const Activations& x, std::span<const std::uint32_t> rows,
           float* out, std::size_t stride);
  // out[i] = silu(gate x[rows[i]]) * (up x[rows[i]]).
  void AddGateUp(const PanelMatrix& gate, const PanelMatrix& up, const Activations& x,
                 std::span<const std::uint32_t> rows, float* out, std::size_t stride);

  // Computes everything added since the last Run, then forgets it.
  void Run(ThreadPool& pool);

 private:
  struct Product {
    PanelMatrix first, second;  // second.data is null but for gate and up
    Activations x;
    std::span<const std::uint32_t> rows;
    float* out;
    std::size_t stride;
    std::size_t panels_per_task = 1;
    std::size_t first_task = 0;

    std::size_t Tasks() const { return (first.Panels() + panels_per_task - 1) / panels_per_task; }
  };

  void Push(Product product);

  std::vector<Product> products_;  // keeps its memory from one region to the next
  std::size_t tasks_ = 0;
};

}  // namespace troupe
