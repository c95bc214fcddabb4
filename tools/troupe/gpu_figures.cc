#include "troupe/gpu_figures.h"

#include <fmt/format.h>

#include "gpu/opencl.h"
#include "gpu/usable_gpu.h"

namespace troupe {
namespace {

std::vector<TensorType> TypesIn(std::span<const GpuExpertShape> shapes) {
  std::vector<TensorType> types;
  for (const GpuExpertShape& shape : shapes) {
    types.insert(types.end(), shape.types.begin(), shape.types.end());
  }
  if (!shapes.empty()) return types;
  for (const TensorTypeInfo& info : AllTensorTypes()) types.push_back(info.type);
  return types;
}

Status Measure(std::size_t place, std::span<const GpuExpertShape> shapes, GpuFigures& figures) {
  const MonotonicClock clock;
  TROUPE_ASSIGN_OR_RETURN(const TestedGpu gpu, OpenTestedGpu(place, TypesIn(shapes)));
  TROUPE_ASSIGN_OR_RETURN(figures.speeds, ProbeGpu(*gpu.kernels, clock));
  for (const GpuExpertShape& shape : shapes) {
    TROUPE_ASSIGN_OR_RETURN(const GpuExpertSeconds seconds,
                            ProbeGpuExpert(*gpu.kernels, shape, clock));
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

Result<std::vector<GpuFigures>> FiguresOfGpus(const std::string& choice,
                                              std::span<const GpuExpertShape> shapes) {
  std::vector<GpuFigures> all;
  if (choice == "none") return all;
  const auto infos = ListOpenClDevices();
  if (!infos.ok()) {
    if (choice == "auto") return all;  // no OpenCL: no devices
    return infos.status();
  }
  TROUPE_ASSIGN_OR_RETURN(const std::vector<std::size_t> chosen, ChooseGpus(*infos, choice));
  for (const GpuInfo& info : *infos) all.push_back({.info = info});
  for (const std::size_t place : chosen) {
    all[place].chosen = true;
    all[place].status = Measure(place, shapes, all[place]);
  }
  return all;
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

Json GpuRecord(const GpuFigures& figures, std::span<const std::string> shapes) {
  Json record = {{"name", figures.info.name},
                 {"platform", figures.info.platform},
                 {"driver", figures.info.driver},
                 {"memory_bytes", figures.info.memory.count()},
                 {"is_processor", figures.info.is_processor},
                 {"same_bytes", nullptr},
                 {"why_not", figures.status.ok() ? Json(nullptr) : Json(figures.status.message())},
                 {"speeds", nullptr},
                 {"experts", Json::Array()}};
  if (figures.status.code() == Code::kFailedPrecondition) record["same_bytes"] = false;
  if (figures.speeds) {
    record["same_bytes"] = true;
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
