// A device through CUDA's driver API: a stream for each lane. See cuda.h and device.h.
#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "gpu/cuda.h"
#include "gpu/cuda_context.h"
#include "gpu/cuda_images.h"

namespace troupe {
namespace {

class CudaEvent final : public GpuEvent {
 public:
  CudaEvent(CudaHandle<CUevent> event, GpuLane lane) : event_(std::move(event)), lane_(lane) {}

  CUevent get() const { return event_.get(); }
  GpuLane lane() const { return lane_; }

  bool Ended() const override {
    const CudaContext& context = event_.context();
    return !context.Enter().ok() || context.api().EventQuery(get()) != CUDA_ERROR_NOT_READY;
  }
  // What fails takes the context with it, so that whoever waits for later work hears of it, too.
  Status Wait() override {
    const CudaContext& context = event_.context();
    TROUPE_RETURN_IF_ERROR(context.Enter());
    return context.StatusOf(context.api().EventSynchronize(get()), "cuEventSynchronize");
  }

 private:
  CudaHandle<CUevent> event_;
  GpuLane lane_;
};

class CudaBuffer final : public GpuBuffer {
 public:
  CudaBuffer(Bytes size, CudaHandle<CUdeviceptr> memory)
      : GpuBuffer(size), memory_(std::move(memory)) {}
  CUdeviceptr get() const { return memory_.get(); }

 private:
  CudaHandle<CUdeviceptr> memory_;
};

class CudaHostMemory final : public GpuHostMemory {
 public:
  CudaHostMemory(Bytes size, CudaHandle<void*> memory) : size_(size), memory_(std::move(memory)) {}
  std::span<std::byte> bytes() override {
    return {static_cast<std::byte*>(memory_.get()), size_.count()};
  }

 private:
  Bytes size_;
  CudaHandle<void*> memory_;
};

class CudaKernel final : public GpuKernel {
 public:
  CudaKernel(std::shared_ptr<const CudaHandle<CUmodule>> program, CUfunction kernel)
      : program_(std::move(program)), kernel_(kernel) {}
  CUfunction get() const { return kernel_; }

 private:
  std::shared_ptr<const CudaHandle<CUmodule>> program_;  // has the kernel
  CUfunction kernel_;
};

const CudaImage* ImageOf(std::string_view program) {
  const auto images = CudaImages();
  const auto found = std::ranges::find(images, program, &CudaImage::program);
  return found == images.end() ? nullptr : &*found;
}

class CudaDevice final : public GpuDevice {
 public:
  static Result<std::unique_ptr<GpuDevice>> Open(const CudaApi& api, CUdevice id, GpuInfo info) {
    auto device = std::unique_ptr<CudaDevice>(new CudaDevice(api, std::move(info)));
    TROUPE_ASSIGN_OR_RETURN(device->context_, CudaContext::Retain(api, id));
    TROUPE_RETURN_IF_ERROR(device->context_->Enter());
    // For kernels; the driver says that copies do not heed it. The greatest is the least number.
    int least = 0, greatest = 0;
    TROUPE_RETURN_IF_ERROR(device->StatusOf(api.CtxGetStreamPriorityRange(&least, &greatest),
                                            "cuCtxGetStreamPriorityRange"));
    for (std::size_t lane = 0; lane < kGpuLanes; ++lane) {
      const int priority = static_cast<GpuLane>(lane) == GpuLane::kPrefetch ? least : greatest;
      CUstream stream = nullptr;
      TROUPE_RETURN_IF_ERROR(
          device->StatusOf(api.StreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, priority),
                           "cuStreamCreateWithPriority"));
      device->streams_[lane] = {device->context_, stream, api.StreamDestroy};
    }
    return std::unique_ptr<GpuDevice>(std::move(device));
  }
  ~CudaDevice() override {
    for (const CudaHandle<CUstream>& stream : streams_) {
      if (stream.get() != nullptr && context_->Enter().ok()) api_.StreamSynchronize(stream.get());
    }
  }

  const GpuInfo& info() const override { return info_; }

  Result<std::unique_ptr<GpuBuffer>> Allocate(Bytes size) override {
    TROUPE_RETURN_IF_ERROR(context_->Enter());
    CUdeviceptr memory = 0;
    TROUPE_RETURN_IF_ERROR(
        StatusOf(api_.MemAlloc(&memory, size.count()), "cuMemAlloc").WithContext(ToString(size)));
    return std::unique_ptr<GpuBuffer>(std::make_unique<CudaBuffer>(
        size, CudaHandle<CUdeviceptr>(context_, memory, api_.MemFree)));
  }

  Result<std::unique_ptr<GpuHostMemory>> AllocateHost(Bytes size) override {
    TROUPE_RETURN_IF_ERROR(context_->Enter());
    void* memory = nullptr;
    // What a driver says of memory that the host lacks is the same as of the card's.
    TROUPE_RETURN_IF_ERROR(StatusOf(api_.MemHostAlloc(&memory, size.count(), 0), "cuMemHostAlloc")
                               .WithContext(ToString(size)));
    return std::unique_ptr<GpuHostMemory>(std::make_unique<CudaHostMemory>(
        size, CudaHandle<void*>(context_, memory, api_.MemFreeHost)));
  }

  Result<std::vector<std::unique_ptr<GpuKernel>>> Build(
      const GpuSource& source, std::span<const std::string_view> names) override {
    TROUPE_RETURN_IF_ERROR(context_->Enter());
    TROUPE_ASSIGN_OR_RETURN(const auto program, Load(source.name));
    std::vector<std::unique_ptr<GpuKernel>> kernels;
    for (const std::string_view name : names) {
      CUfunction kernel = nullptr;
      TROUPE_RETURN_IF_ERROR(
          StatusOf(api_.ModuleGetFunction(&kernel, program->get(), std::string(name).c_str()),
                   "cuModuleGetFunction")
              .WithContext(name));
      kernels.push_back(std::make_unique<CudaKernel>(program, kernel));
    }
    return kernels;
  }

  Result<GpuEventPtr> CopyIn(GpuLane lane, std::span<const std::byte> from, GpuBuffer& to, Bytes at,
                             std::span<const GpuEventPtr> after) override {
    TROUPE_CHECK(at.count() <= to.size().count() && from.size() <= to.size().count() - at.count());
    return HandIn(lane, after, "cuMemcpyHtoDAsync", [&](CUstream stream) {
      return api_.MemcpyHtoDAsync(AddressOf(&to) + at.count(), from.data(), from.size(), stream);
    });
  }

  Result<GpuEventPtr> CopyOut(GpuLane lane, const GpuBuffer& from, Bytes at,
                              std::span<std::byte> to,
                              std::span<const GpuEventPtr> after) override {
    TROUPE_CHECK(at.count() <= from.size().count() &&
                 to.size() <= from.size().count() - at.count());
    return HandIn(lane, after, "cuMemcpyDtoHAsync", [&](CUstream stream) {
      return api_.MemcpyDtoHAsync(to.data(), AddressOf(&from) + at.count(), to.size(), stream);
    });
  }

  Result<GpuEventPtr> Launch(const GpuLaunch& launch, std::span<const GpuEventPtr> after) override {
    // The driver reads as many bytes of each as the kernel has of it: the first ones.
    std::vector<std::uint64_t> values;
    for (const GpuArgument& argument : launch.arguments) values.push_back(ValueOf(argument));
    std::vector<void*> arguments;
    for (std::uint64_t& value : values) arguments.push_back(&value);
    const CUfunction kernel = static_cast<const CudaKernel*>(launch.kernel)->get();
    return HandIn(GpuLane::kCompute, after, "cuLaunchKernel", [&](CUstream stream) {
      return api_.LaunchKernel(kernel, launch.groups[0], launch.groups[1], 1, launch.group_size, 1,
                               1, 0, stream, arguments.data(), nullptr);
    });
  }

 private:
  CudaDevice(const CudaApi& api, GpuInfo info) : api_(api), info_(std::move(info)) {}

  Status StatusOf(CUresult error, std::string_view call) const {
    return CudaStatus(api_, error, call);
  }
  CUstream StreamOf(GpuLane lane) const { return streams_[static_cast<std::size_t>(lane)].get(); }
  static CUdeviceptr AddressOf(const GpuBuffer* buffer) {
    return buffer == nullptr ? 0 : static_cast<const CudaBuffer*>(buffer)->get();
  }
  static std::uint64_t ValueOf(const GpuArgument& argument) {
    if (const auto* buffer = std::get_if<const GpuBuffer*>(&argument)) return AddressOf(*buffer);
    if (const auto* word = std::get_if<std::uint32_t>(&argument)) return *word;
    return std::get<std::uint64_t>(argument);
  }

  // Whoever waits sleeps: the processor's threads compute meanwhile, and one that turns around an
  // event would take a core from them.
  Result<std::shared_ptr<CudaEvent>> MakeEvent(GpuLane lane) {
    CUevent event = nullptr;
    TROUPE_RETURN_IF_ERROR(
        StatusOf(api_.EventCreate(&event, CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC),
                 "cuEventCreate"));
    return std::make_shared<CudaEvent>(CudaHandle<CUevent>(context_, event, api_.EventDestroy),
                                       lane);
  }

  // A piece of work between what it waits for and the event of its end. `work` may only be handed
  // in, so that nothing is under way where it gives an error.
  template <typename Work>
  Result<GpuEventPtr> HandIn(GpuLane lane, std::span<const GpuEventPtr> after,
                             std::string_view call, Work&& work) {
    TROUPE_RETURN_IF_ERROR(context_->Enter());
    const CUstream stream = StreamOf(lane);
    TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<CudaEvent> end, MakeEvent(lane));
    for (const GpuEventPtr& event : after) {
      const auto& before = static_cast<const CudaEvent&>(*event);
      if (before.lane() == lane) continue;  // a stream does its work in order
      TROUPE_RETURN_IF_ERROR(
          StatusOf(api_.StreamWaitEvent(stream, before.get(), 0), "cuStreamWaitEvent"));
    }
    TROUPE_RETURN_IF_ERROR(StatusOf(work(stream), call));
    const CUresult noted = api_.EventRecord(end->get(), stream);
    if (noted == CUDA_SUCCESS) return GpuEventPtr(std::move(end));
    api_.StreamSynchronize(stream);  // the caller takes its memory back
    return StatusOf(noted, "cuEventRecord");
  }

  Result<std::shared_ptr<const CudaHandle<CUmodule>>> Load(std::string_view program) {
    const CudaImage* const image = ImageOf(program);
    if (image == nullptr) {
      return Error(Code::kUnimplemented, "{}: this build has no kernels for {}", info_.name,
                   program);
    }
    std::string log(1000, '\0');
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};
    CUmodule module = nullptr;
    const CUresult error =
        api_.ModuleLoadDataEx(&module, image->ptx.data(), std::size(options), options, values);
    if (error != CUDA_SUCCESS) {
      const Status status = StatusOf(error, "cuModuleLoadDataEx");
      return Error(status.code(), "{}: kernels for {}: {}{}", info_.name, program, status.message(),
                   FirstLineOf(log.c_str()));
    }
    return std::make_shared<const CudaHandle<CUmodule>>(context_, module, api_.ModuleUnload);
  }

  // ": <the first line that the compiler said>", or nothing.
  static std::string FirstLineOf(std::string_view log) {
    const std::size_t begin = log.find_first_not_of("\r\n");
    if (begin == log.npos) return "";
    return ": " + std::string(log.substr(begin, log.find_first_of("\r\n", begin) - begin));
  }

  const CudaApi& api_;
  GpuInfo info_;
  CudaContextPtr context_;
  std::array<CudaHandle<CUstream>, kGpuLanes> streams_;
};

struct FoundCuda {
  CUdevice id = 0;
  int capability = 0;  // 86: 8.6
  GpuInfo info;
};

int AttributeOf(const CudaApi& api, CUdevice id, CUdevice_attribute attribute) {
  int value = 0;
  return api.DeviceGetAttribute(&value, attribute, id) == CUDA_SUCCESS ? value : 0;
}

std::string SmallLettersOf(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

FoundCuda Describe(const CudaApi& api, CUdevice id, int version) {
  char text[256] = "";
  FoundCuda found{.id = id};
  found.capability = 10 * AttributeOf(api, id, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                     AttributeOf(api, id, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  GpuInfo& info = found.info;
  if (api.DeviceGetName(text, sizeof text, id) == CUDA_SUCCESS) info.name = text;
  if (api.DeviceGetPCIBusId(text, sizeof text, id) == CUDA_SUCCESS) {
    info.bus_place = SmallLettersOf(text);
  }
  info.platform = kNvidiaPlatform;
  info.driver = fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
  std::size_t memory = 0;
  if (api.DeviceTotalMem(&memory, id) == CUDA_SUCCESS) info.memory = Bytes(memory);
  info.largest_buffer = info.memory;
  info.shares_memory = AttributeOf(api, id, CU_DEVICE_ATTRIBUTE_INTEGRATED) != 0;
  info.has_doubles = true;  // since capability 1.3
  info.api = GpuApi::kCuda;
  return found;
}

// Of the calls without which there is no list.
Status ListStatus(const CudaApi& api, CUresult error, std::string_view call) {
  if (error == CUDA_SUCCESS) return OkStatus();
  return Error(Code::kUnavailable, "no CUDA: {}", CudaStatus(api, error, call).message());
}

// At least one.
Result<std::vector<FoundCuda>> FindAll(const CudaApi& api) {
  int count = 0, version = 0;
  TROUPE_RETURN_IF_ERROR(ListStatus(api, api.Init(0), "cuInit"));
  TROUPE_RETURN_IF_ERROR(ListStatus(api, api.DeviceGetCount(&count), "cuDeviceGetCount"));
  if (count == 0) return Error(Code::kUnavailable, "no CUDA: its driver has no device");
  api.DriverGetVersion(&version);
  std::vector<FoundCuda> found;
  for (int i = 0; i < count; ++i) {
    CUdevice id = 0;
    TROUPE_RETURN_IF_ERROR(CudaStatus(api, api.DeviceGet(&id, i), "cuDeviceGet"));
    found.push_back(Describe(api, id, version));
  }
  return found;
}

}  // namespace

Result<std::vector<GpuInfo>> ListCudaDevices() {
  TROUPE_ASSIGN_OR_RETURN(const CudaApi* api, LoadCuda());
  TROUPE_ASSIGN_OR_RETURN(std::vector<FoundCuda> found, FindAll(*api));
  std::vector<GpuInfo> infos;
  for (FoundCuda& device : found) infos.push_back(std::move(device.info));
  return infos;
}

Result<std::unique_ptr<GpuDevice>> OpenCudaDevice(std::size_t place) {
  TROUPE_ASSIGN_OR_RETURN(const CudaApi* api, LoadCuda());
  TROUPE_ASSIGN_OR_RETURN(std::vector<FoundCuda> found, FindAll(*api));
  if (place >= found.size()) {
    return Error(Code::kNotFound, "no CUDA device {}: there are {}", place, found.size());
  }
  FoundCuda& device = found[place];
  if (device.capability < kCudaCapability) {
    return Error(Code::kUnimplemented,
                 "{}: has compute capability {}.{}, and the kernels need {}.{}", device.info.name,
                 device.capability / 10, device.capability % 10, kCudaCapability / 10,
                 kCudaCapability % 10);
  }
  return CudaDevice::Open(*api, device.id, std::move(device.info));
}

}  // namespace troupe
