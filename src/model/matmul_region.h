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
  // out[i] = w x[rows[i]], for all tokens of x if rows is empty; row i at out + i * stride. With a
  // bias fl(that + bias).
  void Add(const PanelMatrix& w, const Activations& x, std::span<const std::uint32_t> rows,
           float* out, std::size_t stride, const float* bias = nullptr);
  void Add(const Linear& w, const Activations& x, std::span<const std::uint32_t> rows, float* out,
           std::size_t stride) {
    Add(w.weight, x, rows, out, stride, w.bias);
  }
  // out[i] = the first half of a feed-forward (kernels/matmul.h) of x[rows[i]].
  void AddGateUp(const GateUpWeights& w, const Activations& x, std::span<const std::uint32_t> rows,
                 float* out, std::size_t stride);

  // Computes everything added since the last Run, then forgets it.
  void Run(ThreadPool& pool);

 private:
  struct Product {
    GateUpWeights w;        // a product alone is the gate, with its bias
    bool combines = false;  // else the product is the answer
    Activations x;
    std::span<const std::uint32_t> rows;
    float* out;
    std::size_t stride;
    std::size_t panels_per_task = 1;
    std::size_t first_task = 0;

    std::size_t Tokens() const { return rows.empty() ? x.tokens : rows.size(); }
    std::size_t Tasks() const { return (w.gate.Panels() + panels_per_task - 1) / panels_per_task; }
    void Run(std::size_t panel, std::size_t panels) const;
  };

  void Push(Product product);

  std::vector<Product> products_;  // keeps its memory from one region to the next
  std::size_t tasks_ = 0;
};

}  // namespace troupe
