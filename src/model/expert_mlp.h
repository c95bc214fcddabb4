// An expert's arithmetic: gate x and up x, each with its bias, combined in the family's form; then
// down, with its bias; between the two halves an 8-bit form where the width has one. The expert
// block runs the halves of several experts in one region; ExpertMlp runs one expert for whoever has
// its weights and the rows, without a pass: the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "base/thread_pool.h"
#include "io/aligned_buffer.h"
#include "model/matmul_region.h"
#include "model/weights.h"
#include "quant/activations.h"

namespace troupe {

// hidden[i] = the first half for x[rows[i]], `stride` floats apart.
inline void AddFirstHalf(MatMulRegion& region, const Mlp& expert, const Activations& x,
                         std::span<const std::uint32_t> rows, float* hidden, std::size_t stride) {
  region.AddGateUp(expert.FirstHalf(), x, rows, hidden, stride);
}
// The 8-bit form of all rows of x, if it has room for one.
void QuantizeRows(const Activations& x, ThreadPool& pool);
// out[i] = down hidden[i] (and its bias), one row after the other.
inline void AddSecondHalf(MatMulRegion& region, const Mlp& expert, const Activations& hidden,
                          float* out) {
  region.Add(expert.down, hidden, {}, out, expert.down.rows, expert.down_bias);
}

class ExpertMlp {
 public:
  // For experts of hidden rows as long as `ff`, and at most `rows` rows at a time.
  static Result<ExpertMlp> Create(std::size_t ff, std::size_t rows);

  // out[i] = the expert's answer to row rows[i] of x, one after the other; x has its 8-bit form
  // where the weights want it.
  void Run(const Mlp& expert, const Activations& x, std::span<const std::uint32_t> rows,
           std::span<float> out, ThreadPool& pool);

 private:
  ExpertMlp(std::size_t ff, std::size_t rows, AlignedBuffer hidden)
      : ff_(ff), most_rows_(rows), hidden_(std::move(hidden)) {}

  std::size_t ff_, most_rows_;
  AlignedBuffer hidden_;  // floats, then their 8-bit form
  MatMulRegion region_;
};

}  // namespace troupe
