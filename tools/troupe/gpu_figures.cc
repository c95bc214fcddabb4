#include "troupe/gpu_figures.h"

#include <fmt/format.h>

#include <algorithm>

#include "gpu/driver_call.h"
#include "gpu/usable_gpu.h"

namespace troupe {
namespace {

// Of two common types where no model says which it has: a driver may take seconds to compile one.
std::vector<TensorType> TypesIn(std::span<const GpuExpertShape> shapes) {
  if (shapes.empty()) return {TensorType::kQ8_0, TensorType::kQ4_K};
  std::vector<TensorType> types;
  for (const GpuExpertShape& shape : shapes) {
    types.insert(types.end(), shape.types.begin(), shape.types.end());
  }
  std::sort(types.begin(), types.end());
  types.erase(std::unique(types.begin(), types.end()), types.end());
  return types;
}

Result<std::vector<GpuInfo>> ListDevices() {
  return CallWithin(kLongestGpuListing, "which devices there are", ListGpus);
}

Status Measure(std::size_t place, std::span<const GpuExpertShape> shapes, GpuFigures& figures) {
  const MonotonicClock clock;
  const Result<TestedGpu> gpu =
      CallWithin(kLongestGpuOpening, figures.info.name,
                 [place, types = TypesIn(shapes)] { return OpenTestedGpu(place, types); });
  if (gpu.ok()) figures.same_bytes = true;
  if (gpu.status().code() == Code::kFailedPrecondition) figures.same_bytes = false;
  TROUPE_RETURN_IF_ERROR(gpu.status());
  TROUPE_ASSIGN_OR_RETURN(figures.speeds, ProbeGpu(*gpu->kernels, clock));
  for (const GpuExpertShape& shape : shapes) {
    TROUPE_ASSIGN_OR_RETURN(const GpuExpertSeconds seconds,
                            ProbeGpuExpert(*gpu->kernels, shape, clock));
    figures.experts.push_back(seconds);
  }
  return OkStatus();
}

std::string WhatWasFound(const GpuFigures& figures) {
  if (!figures.chosen) {
    return figures.info.is_processor ? "computes on the processor, not measured" : "not measured";
  }
  if (!figures.status.ok()) return figures.status.message();
  const GpuSpeeds& speeds = *figures.speeds;
  return fmt::format(
      "the processor's bytes; copies {:.1f} GB/s in, {:.1f} GB/s out; a kernel every {:.1f} us, "
      "waited for {:.1f} us",
      speeds.in_bytes_per_second / 1e9, speeds.out_bytes_per_second / 1e9,
      speeds.launch_seconds * 1e6, speeds.round_trip_seconds * 1e6);
}

}  // namespace

Status CheckGpuChoice(const std::string& choice) {
  if (choice == "auto" || choice == "none") return OkStatus();
  TROUPE_ASSIGN_OR_RETURN(const std::vector<GpuInfo> infos, ListDevices());
  return ChooseGpus(infos, choice).status();
}

FoundGpus FiguresOfGpus(const std::string& choice, std::span<const GpuExpertShape> shapes) {
  if (choice == "none") return {};
  const auto infos = ListDevices();
  if (!infos.ok()) return {.why_none = infos.status()};
  const auto chosen = ChooseGpus(*infos, choice);
  if (!chosen.ok()) return {.why_none = chosen.status()};
  FoundGpus found;
  for (const GpuInfo& info : *infos) found.cards.push_back({.info = info});
  for (const std::size_t place : *chosen) {
    found.cards[place].chosen = true;
    found.cards[place].status = Measure(place, shapes, found.cards[place]);
  }
  return found;
}

std::string GpuLines(const GpuFigures& figures, std::span<const std::string> shapes) {
  std::string lines =
      fmt::format("card      {} ({}), {}: {}\n", figures.info.name, figures.info.platform,
                  ToString(figures.info.memory), WhatWasFound(figures));
  for (std::size_t i = 0; i < figures.experts.size(); ++i) {
    lines += fmt::format("  expert  {}: {:.1f} us, a further row {:.1f} us\n", shapes[i],
                         figures.experts[i].first_row * 1e6, figures.experts[i].further_row * 1e6);
  }
  return lines;
}

std::string GpuLines(const FoundGpus& found, std::span<const std::string> shapes) {
  std::string lines;
  for (const GpuFigures& card : found.cards) lines += GpuLines(card, shapes);
  if (!found.why_none.ok()) lines += fmt::format("cards     none: {}\n", found.why_none.message());
  return lines;
}

Json GpuRecord(const GpuFigures& figures, std::span<const std::string> shapes) {
  Json record = {{"name", figures.info.name},
                 {"platform", figures.info.platform},
                 {"driver", figures.info.driver},
                 {"memory_bytes", figures.info.memory.count()},
                 {"is_processor", figures.info.is_processor},
                 {"same_bytes", figures.same_bytes ? Json(*figures.same_bytes) : Json(nullptr)},
                 {"why_not", figures.status.ok() ? Json(nullptr) : Json(figures.status.message())},
                 {"speeds", nullptr},
                 {"experts", Json::Array()}};
  if (figures.speeds) {
    record["speeds"] = {{"in_bytes_per_s", figures.speeds->in_bytes_per_second},
                        {"out_bytes_per_s", figures.speeds->out_bytes_per_second},
                        {"launch_s", figures.speeds->launch_seconds},
                        {"round_trip_s", figures.speeds->round_trip_seconds}};
  }
  for (std::size_t i = 0; i < figures.experts.size(); ++i) {
    record["experts"].push_back({{"shape", shapes[i]},
                                 {"first_row_s", figures.experts[i].first_row},
                                 {"further_row_s", figures.experts[i].further_row}});
  }
  return record;
}

}  // namespace troupe
