// What `troupe probe` says of cards: each that is there, whether it computes what the processor
// does, and how fast it is reached. How that is measured: gpu/probe.h.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "base/tensor_type.h"
#include "gpu/device.h"
#include "gpu/probe.h"

namespace troupe {

struct GpuFigures {
  GpuInfo info;
  bool chosen = false;
  Status status;                    // why a chosen one has no speeds
  std::optional<GpuSpeeds> speeds;  // of a chosen one that computes what the processor does
};

// Of all devices that there are, those of `choice` (usable_gpu.h) tested with weights of these
// types and measured. A name that no device has is an error; a machine without devices is none.
Result<std::vector<GpuFigures>> FiguresOfGpus(const std::string& choice,
                                              std::span<const TensorType> types);

// "card      NVIDIA GeForce RTX 3060 (NVIDIA CUDA), 12.0 GiB: ..."
std::string GpuLine(const GpuFigures& figures);
Json GpuRecord(const GpuFigures& figures);

}  // namespace troupe
