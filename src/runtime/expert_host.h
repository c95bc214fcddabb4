// Computes experts for the rows of other machines, with those that are held here: the same bytes
// that the rows' owner would compute. Whose turn it is, and what comes over the wire, is decided
// elsewhere. Threads: one at a time, which need not be the one that runs the passes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "base/tensor_type.h"
#include "base/thread_pool.h"
#include "model/expert_mlp.h"
#include "quant/activations.h"
#include "runtime/held_experts.h"

namespace troupe {

// Whether experts whose matrices have these types multiply rows in their 8-bit form alone, so that
// nobody needs the floats.
bool ReadsCodesAlone(TensorType gate, TensorType up);

class ExpertHost {
 public:
  // Rows that are computed together; more are computed in parts.
  static constexpr std::size_t kRowsTogether = 64;

  // For experts of hidden rows as long as `ff`. `held` must outlive it. Its own threads have that
  // much less priority (base/thread_share.h).
  static Result<std::unique_ptr<ExpertHost>> Create(HeldExperts& held, std::size_t ff,
                                                    std::uint32_t threads, int lower_priority = 0);

  // out: a row as long as the model is wide for each of `rows` of the input, in that order. The
  // input has the form that the layer's experts read. kNotFound: the expert is not held.
  Status Compute(ExpertId id, const Activations& input, std::span<const std::uint32_t> rows,
                 std::span<float> out);

 private:
  ExpertHost(HeldExperts& held, ExpertMlp mlp, std::uint32_t threads, int lower_priority)
      : held_(held), mlp_(std::move(mlp)), pool_(threads, lower_priority) {}

  HeldExperts& held_;
  ExpertMlp mlp_;
  ThreadPool pool_;
};

}  // namespace troupe
