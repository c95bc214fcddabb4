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
  Status status;                   // why of a chosen one not all was measured
  std::optional<bool> same_bytes;  // as the processor computes; nothing where that was not compared
  // Of a chosen one that computes what the processor does; an expert of each shape.
  std::optional<GpuSpeeds> speeds;
  std::vector<GpuExpertSeconds> experts;
};

struct FoundGpus {
  std::vector<GpuFigures> cards;
  Status why_none;  // of a machine without devices
};

// Whether there is a device of that choice (usable_gpu.h). "auto" and "none" are always right, and
// no driver is loaded for them.
Status CheckGpuChoice(const std::string& choice);

// Of all devices that there are, those of the choice tested and measured: with experts of these
// shapes or, where there are none, with products of two common types. A driver that hangs never
// returns from here.
FoundGpus FiguresOfGpus(const std::string& choice, std::span<const GpuExpertShape> shapes);

// "card      NVIDIA GeForce RTX 3060 (NVIDIA CUDA), 12.0 GiB: ...", and a line for each shape,
// whose names are given.
std::string GpuLines(const GpuFigures& figures, std::span<const std::string> shapes);
// "cards     none: no OpenCL: ..." where there is no device; empty where none was to be looked for.
std::string GpuLines(const FoundGpus& found, std::span<const std::string> shapes);
Json GpuRecord(const GpuFigures& figures, std::span<const std::string> shapes);

}  // namespace troupe
