// What `troupe probe` says of cards: each that is there, whether it computes what the processor
// does, how fast it is reached and how fast it computes experts. How that is measured: gpu/probe.h.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "gpu/device.h"
#include "gpu/probe.h"

namespace troupe {

struct GpuFigures {
  GpuInfo info;
  bool chosen = false;
  Status status;  // why of a chosen one not all was measured
  // Of a chosen one that computes what the processor does; an expert of each shape.
  std::optional<GpuSpeeds> speeds;
  std::vector<GpuExpertSeconds> experts;
};

// Of all devices that there are, those of `choice` (usable_gpu.h) tested and measured: with experts
// of these shapes or, where there are none, with products of every type. A name that no device has
// is an error; a machine without devices is none.
Result<std::vector<GpuFigures>> FiguresOfGpus(const std::string& choice,
                                              std::span<const GpuExpertShape> shapes);

// "card      NVIDIA GeForce RTX 3060 (NVIDIA CUDA), 12.0 GiB: ...", and a line for each shape,
// whose names are given.
std::string GpuLines(const GpuFigures& figures, std::span<const std::string> shapes);
Json GpuRecord(const GpuFigures& figures, std::span<const std::string> shapes);

}  // namespace troupe
