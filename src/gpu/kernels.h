// The exact kernels on a device: products with panels in its memory, the 8-bit form of activations
// and the gate's form, each handed to the compute lane. Their bytes are those of
// quant/panel_reference.h, quant/activations.h and quant/gate_reference.h; self_test.h holds a
// device to that. A NaN is a NaN there too, though its bits may be others. What an expert makes of
// them: expert.h.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include "base/status.h"
#include "base/tensor_type.h"
#include "gpu/device.h"
#include "quant/gate_reference.h"

namespace troupe {

// A packed matrix (quant/panel.h) that begins `at` bytes into a buffer: a multiple of 16.
struct GpuMatrix {
  TensorType type = TensorType::kF32;
  std::uint32_t rows = 0;
  std::uint32_t cols = 0;
  const GpuBuffer* memory = nullptr;
  std::uint64_t at = 0;
};

// Floats from number `at` of a buffer on.
struct GpuVector {
  const GpuBuffer* memory = nullptr;  // null: none
  std::uint64_t at = 0;
};

// Rows of `cols` floats, and for block-quantized weights their 8-bit form, an ActivationGroup for
// each 32 columns.
struct GpuRows {
  const GpuBuffer* values = nullptr;
  const GpuBuffer* groups = nullptr;  // null where nothing wants it
  std::uint32_t count = 0;
  std::uint32_t cols = 0;
};

// Whether products with the type take the 8-bit form.
bool WantsGroups(TensorType type);

class GpuKernels {
 public:
  // Builds what products with these types need. The device must outlive it.
  static Result<GpuKernels> Build(GpuDevice& device, std::span<const TensorType> types);

  // Fills x.groups from x.values.
  Result<GpuEventPtr> Quantize(const GpuRows& x, std::span<const GpuEventPtr> after);

  // out[i * w.rows + row] = row of w times row rows[i] of x, plus the row's bias; `count` rows of
  // x, those of the buffer `rows` (32-bit numbers) or, where it is null, the first ones.
  Result<GpuEventPtr> Multiply(const GpuMatrix& w, const GpuVector& bias, const GpuRows& x,
                               const GpuBuffer* rows, std::uint32_t count, const GpuBuffer& out,
                               std::span<const GpuEventPtr> after);

  // gates[i] = GateReference(form, gates[i], ups[i]) for the first `count`. `ups` may be the gates
  // themselves where the form takes them alone.
  Result<GpuEventPtr> Combine(GateForm form, const GpuBuffer& gates, const GpuBuffer& ups,
                              std::uint32_t count, std::span<const GpuEventPtr> after);

  GpuDevice& device() const { return *device_; }

 private:
  explicit GpuKernels(GpuDevice& device) : device_(&device) {}

  GpuDevice* device_;
  std::unique_ptr<GpuKernel> quantize_, combine_;
  std::map<TensorType, std::unique_ptr<GpuKernel>> products_;
};

}  // namespace troupe
