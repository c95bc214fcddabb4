#include "gpu/usable_gpu.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "base/log.h"
#include "gpu/self_test.h"

namespace troupe {
namespace {

// Letters of ASCII alone: names of devices have no others.
std::string InSmallLetters(std::string_view text) {
  std::string small(text);
  for (char& c : small) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return small;
}

bool HasText(const GpuInfo& info, std::string_view text) {
  const std::string part = InSmallLetters(text);
  return InSmallLetters(info.name).find(part) != std::string::npos ||
         InSmallLetters(info.platform).find(part) != std::string::npos;
}

bool HasDeviceFile() {
  for (const char* const path : {"/dev/nvidiactl", "/dev/dri", "/dev/kfd", "/dev/dxg"}) {
    if (access(path, F_OK) == 0) return true;
  }
  return false;
}

std::string_view NameOf(GpuApi api) { return api == GpuApi::kCuda ? "CUDA" : "OpenCL"; }

Result<TestedGpu> OpenBy(const GpuWay& way, std::span<const TensorType> types) {
  TestedGpu gpu;
  TROUPE_ASSIGN_OR_RETURN(gpu.device, OpenGpu(way));
  TROUPE_ASSIGN_OR_RETURN(GpuKernels kernels, GpuKernels::Build(*gpu.device, types));
  gpu.kernels = std::make_unique<GpuKernels>(std::move(kernels));
  TROUPE_RETURN_IF_ERROR(TestGpu(*gpu.kernels, types));
  return gpu;
}

}  // namespace

Result<std::vector<std::size_t>> ChooseGpus(std::span<const GpuInfo> infos,
                                            std::string_view choice) {
  std::vector<std::size_t> chosen;
  if (choice == "none") return chosen;
  const bool every_card = choice == "auto";
  for (std::size_t i = 0; i < infos.size(); ++i) {
    if (every_card ? !infos[i].is_processor : HasText(infos[i], choice)) chosen.push_back(i);
  }
  if (!chosen.empty() || every_card) return chosen;
  std::string there;
  for (const GpuInfo& info : infos) {
    there += fmt::format("{}'{}'", there.empty() ? "" : ", ", info.name);
  }
  return Error(Code::kNotFound, "no device is called '{}'; there is {}{}", choice,
               there.empty() ? "none" : there, ButNoCuda(infos));
}

std::string ButNoCuda(std::span<const GpuInfo> infos) {
  if (infos.empty() || infos.front().why_no_cuda.empty()) return "";
  return "; " + infos.front().why_no_cuda;
}

Result<std::vector<GpuInfo>> ListGpus() {
  TROUPE_ASSIGN_OR_RETURN(std::vector<ListedGpu> found, FindGpus());
  std::vector<GpuInfo> infos;
  for (ListedGpu& gpu : found) infos.push_back(std::move(gpu.info));
  return infos;
}

Result<TestedGpu> OpenByFirst(std::span<const GpuWay> ways,
                              const std::function<Result<TestedGpu>(const GpuWay&)>& open,
                              Status why) {
  for (const GpuWay& way : ways) {
    Result<TestedGpu> gpu = open(way);
    if (gpu.ok()) {
      if (!why.ok()) {
        LogWarning("a card is reached through {}: {}", NameOf(way.api), why.message());
      }
      return gpu;
    }
    if (gpu.status().code() == Code::kFailedPrecondition) return gpu.status();
    if (why.ok()) why = gpu.status();
  }
  return why;
}

Status WhyNotByCuda(const GpuInfo& info) {
  if (info.platform != kNvidiaPlatform || info.why_no_cuda.empty()) return OkStatus();
  return Error(Code::kUnavailable, "{}", info.why_no_cuda);
}

Result<TestedGpu> OpenTestedGpu(std::size_t place, std::span<const TensorType> types) {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<ListedGpu> found, FindGpus());
  if (place >= found.size()) {
    return Error(Code::kNotFound, "no device {}: there are {}", place, found.size());
  }
  return OpenByFirst(
      found[place].ways, [types](const GpuWay& way) { return OpenBy(way, types); },
      WhyNotByCuda(found[place].info));
}

GpuDrivers DriversOfThisMachine() {
  return {.may_have_card = HasDeviceFile, .list = ListGpus, .open = OpenTestedGpu};
}

}  // namespace troupe
