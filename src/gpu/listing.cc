#include "gpu/listing.h"

#include <algorithm>

#include "gpu/cuda.h"
#include "gpu/opencl.h"

namespace troupe {
namespace {

bool IsSameCard(const GpuInfo& cuda, const GpuInfo& opencl) {
  if (!cuda.bus_place.empty() && !opencl.bus_place.empty()) {
    return cuda.bus_place == opencl.bus_place;
  }
  return opencl.platform == kNvidiaPlatform && opencl.name == cuda.name;
}

}  // namespace

std::vector<ListedGpu> EachCardOnce(std::span<const GpuInfo> cuda,
                                    std::span<const GpuInfo> opencl) {
  std::vector<ListedGpu> listed;
  for (std::size_t i = 0; i < cuda.size(); ++i) {
    listed.push_back({.info = cuda[i], .ways = {{GpuApi::kCuda, i}}});
  }
  const auto cards = static_cast<std::ptrdiff_t>(listed.size());
  for (std::size_t i = 0; i < opencl.size(); ++i) {
    const auto end = listed.begin() + cards;
    const auto card = std::find_if(listed.begin(), end, [&](const ListedGpu& gpu) {
      return gpu.ways.size() == 1 && IsSameCard(gpu.info, opencl[i]);
    });
    const GpuWay way{GpuApi::kOpenCl, i};
    if (card != end) {
      card->ways.push_back(way);
    } else {
      listed.push_back({.info = opencl[i], .ways = {way}});
    }
  }
  return listed;
}

Result<std::vector<ListedGpu>> ListingOf(const Result<std::vector<GpuInfo>>& cuda,
                                         const Result<std::vector<GpuInfo>>& opencl) {
  if (!cuda.ok() && !opencl.ok()) {
    return Error(Code::kNotFound, "{}; {}", opencl.status().message(), cuda.status().message());
  }
  const auto of = [](const Result<std::vector<GpuInfo>>& infos) {
    return infos.ok() ? std::span<const GpuInfo>(*infos) : std::span<const GpuInfo>();
  };
  std::vector<ListedGpu> listed = EachCardOnce(of(cuda), of(opencl));
  if (!cuda.ok() && cuda.status().code() != Code::kNotFound) {
    for (ListedGpu& gpu : listed) gpu.info.why_no_cuda = cuda.status().message();
  }
  return listed;
}

Result<std::vector<ListedGpu>> FindGpus() {
  return ListingOf(ListCudaDevices(), ListOpenClDevices());
}

Result<std::unique_ptr<GpuDevice>> OpenGpu(const GpuWay& way) {
  return way.api == GpuApi::kCuda ? OpenCudaDevice(way.place) : OpenOpenClDevice(way.place);
}

}  // namespace troupe
