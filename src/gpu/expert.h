// An expert whose panels are in a device's memory answers rows there: the same bytes as ExpertMlp
// (model/expert_mlp.h) on the processor. Which experts are there, and who copies them, is not its
// matter.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/bytes.h"
#include "base/status.h"
#include "gpu/device.h"
#include "gpu/kernels.h"

namespace troupe {

// The form of model/weights.h's Mlp in a device's memory.
struct GpuMlp {
  GpuMatrix gate, up, down;
  GpuVector gate_bias, up_bias, down_bias;
  GateForm form = GateForm::kSilu;
};

class GpuExpertMlp {
 public:
  struct Shape {
    std::uint32_t width = 0;  // of the model's stream
    std::uint32_t ff = 0;     // of an expert's hidden rows
    std::uint32_t rows = 0;   // at most, of a pass
  };

  // What Create() takes of the device's memory.
  static Bytes BytesFor(const Shape& shape);
  // The kernels must outlive it.
  static Result<GpuExpertMlp> Create(GpuKernels& kernels, const Shape& shape);

  // The rows that experts then answer, one after the other: those of a layer, once. `x` must live
  // until the event has ended. After an error there are no rows.
  Result<GpuEventPtr> SetRows(std::span<const float> x);

  // out[i] = the expert's answer to row rows[i], one after the other, once the event has ended.
  // Until then `rows` and `out` must live, and the expert must stay where it is. Several may be
  // handed in one after the other. They begin when the rows are there and `after` has ended: the
  // expert's copy, say; and fail where one of these has. After an error nothing of this call is
  // under way.
  Result<GpuEventPtr> Run(const GpuMlp& expert, std::span<const std::uint32_t> rows,
                          std::span<float> out, std::span<const GpuEventPtr> after);

 private:
  GpuExpertMlp(GpuKernels& kernels, const Shape& shape) : kernels_(&kernels), shape_(shape) {}

  GpuKernels* kernels_;
  Shape shape_;
  std::uint32_t count_ = 0;  // rows that SetRows gave
  GpuEventPtr set_;          // they are there
  std::unique_ptr<GpuBuffer> x_, x_groups_, rows_, hidden_, ups_, hidden_groups_, out_;
};

}  // namespace troupe
