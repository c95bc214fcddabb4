// A device through OpenCL 1.2: a queue in order for each lane. See opencl.h and device.h.
#include <string>
#include <utility>

#include "base/check.h"
#include "gpu/opencl.h"
#include "gpu/opencl_api.h"

namespace troupe {
namespace {

// Compiled kernels round as IEEE says; a driver that cannot is not asked.
constexpr const char* kBuildOptions = "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt";
constexpr cl_device_fp_config kNeededFloats = CL_FP_DENORM | CL_FP_INF_NAN |
                                              CL_FP_ROUND_TO_NEAREST | CL_FP_FMA |
                                              CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT;
constexpr cl_device_fp_config kNeededDoubles =
    CL_FP_DENORM | CL_FP_INF_NAN | CL_FP_ROUND_TO_NEAREST | CL_FP_FMA;

// What OpenCL made, given back when nobody has it.
template <typename Object>
class OpenClHandle {
 public:
  using Release = cl_int(CL_API_CALL*)(Object);

  OpenClHandle() = default;
  OpenClHandle(Object object, Release release) : object_(object), release_(release) {}
  OpenClHandle(OpenClHandle&& other) noexcept
      : object_(std::exchange(other.object_, nullptr)), release_(other.release_) {}
  OpenClHandle& operator=(OpenClHandle&& other) noexcept {
    std::swap(object_, other.object_);
    std::swap(release_, other.release_);
    return *this;
  }
  ~OpenClHandle() {
    if (object_ != nullptr) release_(object_);
  }

  Object get() const { return object_; }

 private:
  Object object_ = nullptr;
  Release release_ = nullptr;
};

class OpenClEvent final : public GpuEvent {
 public:
  OpenClEvent(const OpenClApi& api, cl_event event) : api_(api), event_(event, api.ReleaseEvent) {}

  cl_event get() const { return event_.get(); }

  bool Ended() const override {
    cl_int state = CL_COMPLETE;
    const cl_int error =
        api_.GetEventInfo(get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, nullptr);
    return error != CL_SUCCESS || state <= CL_COMPLETE;
  }
  Status Wait() override {
    const cl_event event = get();
    return OpenClStatus(api_.WaitForEvents(1, &event), "clWaitForEvents");
  }

 private:
  const OpenClApi& api_;
  OpenClHandle<cl_event> event_;
};

class OpenClBuffer final : public GpuBuffer {
 public:
  OpenClBuffer(Bytes size, OpenClHandle<cl_mem> memory)
      : GpuBuffer(size), memory_(std::move(memory)) {}
  cl_mem get() const { return memory_.get(); }

 private:
  OpenClHandle<cl_mem> memory_;
};

class OpenClHostMemory final : public GpuHostMemory {
 public:
  OpenClHostMemory(const OpenClApi& api, cl_command_queue queue, OpenClHandle<cl_mem> memory,
                   std::span<std::byte> bytes)
      : api_(api), queue_(queue), memory_(std::move(memory)), bytes_(bytes) {}
  ~OpenClHostMemory() override {
    api_.EnqueueUnmapMemObject(queue_, memory_.get(), bytes_.data(), 0, nullptr, nullptr);
    api_.Finish(queue_);
  }
  std::span<std::byte> bytes() override { return bytes_; }

 private:
  const OpenClApi& api_;
  cl_command_queue queue_;  // the device's
  OpenClHandle<cl_mem> memory_;
  std::span<std::byte> bytes_;
};

class OpenClKernel final : public GpuKernel {
 public:
  explicit OpenClKernel(OpenClHandle<cl_kernel> kernel) : kernel_(std::move(kernel)) {}
  cl_kernel get() const { return kernel_.get(); }

 private:
  OpenClHandle<cl_kernel> kernel_;
};

class OpenClDevice final : public GpuDevice {
 public:
  static Result<std::unique_ptr<GpuDevice>> Open(const OpenClApi& api, cl_device_id id,
                                                 GpuInfo info) {
    auto device = std::unique_ptr<OpenClDevice>(new OpenClDevice(api, id, std::move(info)));
    cl_int error = CL_SUCCESS;
    device->context_ = {api.CreateContext(nullptr, 1, &id, nullptr, nullptr, &error),
                        api.ReleaseContext};
    TROUPE_RETURN_IF_ERROR(OpenClStatus(error, "clCreateContext"));
    for (auto& queue : device->queues_) {
      queue = {api.CreateCommandQueue(device->context_.get(), id, 0, &error),
               api.ReleaseCommandQueue};
      TROUPE_RETURN_IF_ERROR(OpenClStatus(error, "clCreateCommandQueue"));
    }
    return std::unique_ptr<GpuDevice>(std::move(device));
  }
  ~OpenClDevice() override {
    for (const auto& queue : queues_) {
      if (queue.get() != nullptr) api_.Finish(queue.get());
    }
  }

  const GpuInfo& info() const override { return info_; }

  Result<std::unique_ptr<GpuBuffer>> Allocate(Bytes size) override {
    TROUPE_ASSIGN_OR_RETURN(OpenClHandle<cl_mem> memory, MakeMemory(CL_MEM_READ_WRITE, size));
    return std::unique_ptr<GpuBuffer>(std::make_unique<OpenClBuffer>(size, std::move(memory)));
  }

  Result<std::unique_ptr<GpuHostMemory>> AllocateHost(Bytes size) override {
    TROUPE_ASSIGN_OR_RETURN(OpenClHandle<cl_mem> memory,
                            MakeMemory(CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, size));
    const cl_command_queue queue = QueueOf(GpuLane::kCompute);
    cl_int error = CL_SUCCESS;
    void* const bytes =
        api_.EnqueueMapBuffer(queue, memory.get(), CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                              size.count(), 0, nullptr, nullptr, &error);
    TROUPE_RETURN_IF_ERROR(OpenClStatus(error, "clEnqueueMapBuffer"));
    return std::unique_ptr<GpuHostMemory>(std::make_unique<OpenClHostMemory>(
        api_, queue, std::move(memory),
        std::span<std::byte>(static_cast<std::byte*>(bytes), size.count())));
  }

  Result<std::vector<std::unique_ptr<GpuKernel>>> Build(
      const GpuSource& source, std::span<const std::string_view> names) override {
    cl_int error = CL_SUCCESS;
    const char* text = source.text.c_str();
    const OpenClHandle<cl_program> program(
        api_.CreateProgramWithSource(context_.get(), 1, &text, nullptr, &error),
        api_.ReleaseProgram);
    TROUPE_RETURN_IF_ERROR(OpenClStatus(error, "clCreateProgramWithSource"));
    error = api_.BuildProgram(program.get(), 1, &id_, kBuildOptions, nullptr, nullptr);
    if (error != CL_SUCCESS) {
      return Error(Code::kInternal, "{}: kernels for {}: {}{}", info_.name, source.name,
                   OpenClStatus(error, "clBuildProgram").message(), FirstLogLine(program.get()));
    }
    std::vector<std::unique_ptr<GpuKernel>> kernels;
    for (const std::string_view name : names) {
      OpenClHandle<cl_kernel> kernel(
          api_.CreateKernel(program.get(), std::string(name).c_str(), &error), api_.ReleaseKernel);
      TROUPE_RETURN_IF_ERROR(OpenClStatus(error, "clCreateKernel").WithContext(name));
      kernels.push_back(std::make_unique<OpenClKernel>(std::move(kernel)));
    }
    return kernels;
  }

  Result<GpuEventPtr> CopyIn(GpuLane lane, std::span<const std::byte> from, GpuBuffer& to, Bytes at,
                             std::span<const GpuEventPtr> after) override {
    TROUPE_CHECK(at.count() <= to.size().count() && from.size() <= to.size().count() - at.count());
    const std::vector<cl_event> events = EventsOf(after);
    cl_event event = nullptr;
    const cl_int error = api_.EnqueueWriteBuffer(
        QueueOf(lane), MemoryOf(to), CL_FALSE, at.count(), from.size(), from.data(),
        static_cast<cl_uint>(events.size()), DataOf(events), &event);
    return Begun(lane, error, "clEnqueueWriteBuffer", event);
  }

  Result<GpuEventPtr> CopyOut(GpuLane lane, const GpuBuffer& from, Bytes at,
                              std::span<std::byte> to,
                              std::span<const GpuEventPtr> after) override {
    TROUPE_CHECK(at.count() <= from.size().count() &&
                 to.size() <= from.size().count() - at.count());
    const std::vector<cl_event> events = EventsOf(after);
    cl_event event = nullptr;
    const cl_int error = api_.EnqueueReadBuffer(
        QueueOf(lane), MemoryOf(from), CL_FALSE, at.count(), to.size(), to.data(),
        static_cast<cl_uint>(events.size()), DataOf(events), &event);
    return Begun(lane, error, "clEnqueueReadBuffer", event);
  }

  Result<GpuEventPtr> Launch(const GpuLaunch& launch, std::span<const GpuEventPtr> after) override {
    const cl_kernel kernel = static_cast<const OpenClKernel*>(launch.kernel)->get();
    for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
      TROUPE_RETURN_IF_ERROR(SetArgument(kernel, static_cast<cl_uint>(i), launch.arguments[i]));
    }
    const std::vector<cl_event> events = EventsOf(after);
    const std::size_t local[2] = {launch.group_size, 1};
    const std::size_t global[2] = {std::size_t{launch.groups[0]} * launch.group_size,
                                   launch.groups[1]};
    cl_event event = nullptr;
    const cl_int error =
        api_.EnqueueNDRangeKernel(QueueOf(GpuLane::kCompute), kernel, 2, nullptr, global, local,
                                  static_cast<cl_uint>(events.size()), DataOf(events), &event);
    return Begun(GpuLane::kCompute, error, "clEnqueueNDRangeKernel", event);
  }

 private:
  OpenClDevice(const OpenClApi& api, cl_device_id id, GpuInfo info)
      : api_(api), id_(id), info_(std::move(info)) {}

  cl_command_queue QueueOf(GpuLane lane) const {
    return queues_[static_cast<std::size_t>(lane)].get();
  }
  static cl_mem MemoryOf(const GpuBuffer& buffer) {
    return static_cast<const OpenClBuffer&>(buffer).get();
  }
  static std::vector<cl_event> EventsOf(std::span<const GpuEventPtr> after) {
    std::vector<cl_event> events;
    for (const GpuEventPtr& event : after) {
      events.push_back(static_cast<const OpenClEvent&>(*event).get());
    }
    return events;
  }
  // OpenCL takes no pointer where there is nothing to wait for.
  static const cl_event* DataOf(const std::vector<cl_event>& events) {
    return events.empty() ? nullptr : events.data();
  }

  // Work that another lane may wait for must not stay in a queue that nobody has flushed.
  Result<GpuEventPtr> Begun(GpuLane lane, cl_int error, std::string_view call, cl_event event) {
    TROUPE_RETURN_IF_ERROR(OpenClStatus(error, call));
    GpuEventPtr begun = std::make_shared<OpenClEvent>(api_, event);
    const cl_int flushed = api_.Flush(QueueOf(lane));
    if (flushed == CL_SUCCESS) return begun;
    (void)begun->Wait();  // the caller takes its memory back
    return OpenClStatus(flushed, "clFlush");
  }

  Result<OpenClHandle<cl_mem>> MakeMemory(cl_mem_flags flags, Bytes size) {
    cl_int error = CL_SUCCESS;
    OpenClHandle<cl_mem> memory(
        api_.CreateBuffer(context_.get(), flags, size.count(), nullptr, &error),
        api_.ReleaseMemObject);
    TROUPE_RETURN_IF_ERROR(OpenClStatus(error, "clCreateBuffer").WithContext(ToString(size)));
    return memory;
  }

  Status SetArgument(cl_kernel kernel, cl_uint place, const GpuArgument& argument) {
    cl_int error = CL_SUCCESS;
    if (const auto* buffer = std::get_if<const GpuBuffer*>(&argument)) {
      const cl_mem memory = *buffer == nullptr ? nullptr : MemoryOf(**buffer);
      error = api_.SetKernelArg(kernel, place, sizeof memory, &memory);
    } else if (const auto* word = std::get_if<std::uint32_t>(&argument)) {
      error = api_.SetKernelArg(kernel, place, sizeof *word, word);
    } else {
      error = api_.SetKernelArg(kernel, place, sizeof(std::uint64_t),
                                &std::get<std::uint64_t>(argument));
    }
    return OpenClStatus(error, "clSetKernelArg");
  }

  // ": <the first line that the compiler said>", or nothing.
  std::string FirstLogLine(cl_program program) const {
    std::size_t size = 0;
    api_.GetProgramBuildInfo(program, id_, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
    std::string log(size, '\0');
    api_.GetProgramBuildInfo(program, id_, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
    constexpr std::string_view kEnds("\r\n\0", 3);
    const std::size_t begin = log.find_first_not_of(kEnds);
    if (begin == std::string::npos) return "";
    return ": " + log.substr(begin, log.find_first_of(kEnds, begin) - begin);
  }

  const OpenClApi& api_;
  cl_device_id id_;
  GpuInfo info_;
  OpenClHandle<cl_context> context_;
  std::array<OpenClHandle<cl_command_queue>, kGpuLanes> queues_;
};

struct FoundDevice {
  cl_device_id id = nullptr;
  cl_device_fp_config floats = 0;
  GpuInfo info;
};

// What a property says; zero, or nothing, where the driver does not tell.
template <typename T>
T PropertyOf(const OpenClApi& api, cl_device_id id, cl_device_info property) {
  T value{};
  api.GetDeviceInfo(id, property, sizeof value, &value, nullptr);
  return value;
}
template <typename Get>
std::string TextFrom(Get&& get) {
  std::size_t size = 0;
  if (get(0, nullptr, &size) != CL_SUCCESS || size == 0) return "";
  std::string text(size, '\0');
  if (get(size, text.data(), nullptr) != CL_SUCCESS) return "";
  return text.c_str();  // up to its end
}

std::string NameOf(const OpenClApi& api, cl_platform_id platform) {
  return TextFrom([&](std::size_t size, void* to, std::size_t* needed) {
    return api.GetPlatformInfo(platform, CL_PLATFORM_NAME, size, to, needed);
  });
}

// Of extensions that not all headers have: cl_khr_pci_bus_info, and what NVIDIA had before it.
constexpr cl_device_info kBusInfo = 0x410F, kNvBus = 0x4008, kNvSlot = 0x4009, kNvDomain = 0x400A;

std::string BusPlaceOf(const OpenClApi& api, cl_device_id id) {
  struct Place {
    cl_uint domain, bus, device, function;
  };
  auto place = PropertyOf<Place>(api, id, kBusInfo);
  if (place.bus == 0 && place.device == 0) {
    const auto slot = PropertyOf<cl_uint>(api, id, kNvSlot);
    place = {PropertyOf<cl_uint>(api, id, kNvDomain), PropertyOf<cl_uint>(api, id, kNvBus),
             slot >> 3, slot & 7};
  }
  if (place.bus == 0 && place.device == 0) return "";
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", place.domain, place.bus, place.device,
                     place.function);
}

// None where the driver gives an error: some do in place of none.
std::vector<cl_device_id> DevicesOf(const OpenClApi& api, cl_platform_id platform) {
  cl_uint count = 0;
  if (api.GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS) return {};
  std::vector<cl_device_id> ids(count);
  if (count == 0 ||
      api.GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, ids.data(), nullptr) != CL_SUCCESS) {
    return {};
  }
  return ids;
}

FoundDevice Describe(const OpenClApi& api, cl_platform_id platform, cl_device_id id) {
  const auto text = [&](cl_device_info property) {
    return TextFrom([&](std::size_t size, void* to, std::size_t* needed) {
      return api.GetDeviceInfo(id, property, size, to, needed);
    });
  };
  FoundDevice found{.id = id,
                    .floats = PropertyOf<cl_device_fp_config>(api, id, CL_DEVICE_SINGLE_FP_CONFIG)};
  found.info.name = text(CL_DEVICE_NAME);
  found.info.driver = text(CL_DRIVER_VERSION);
  found.info.platform = NameOf(api, platform);
  found.info.memory = Bytes(PropertyOf<cl_ulong>(api, id, CL_DEVICE_GLOBAL_MEM_SIZE));
  found.info.largest_buffer = Bytes(PropertyOf<cl_ulong>(api, id, CL_DEVICE_MAX_MEM_ALLOC_SIZE));
  found.info.shares_memory = PropertyOf<cl_bool>(api, id, CL_DEVICE_HOST_UNIFIED_MEMORY) == CL_TRUE;
  const auto doubles = PropertyOf<cl_device_fp_config>(api, id, CL_DEVICE_DOUBLE_FP_CONFIG);
  found.info.has_doubles = (doubles & kNeededDoubles) == kNeededDoubles;
  found.info.is_processor =
      (PropertyOf<cl_device_type>(api, id, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) != 0;
  found.info.bus_place = BusPlaceOf(api, id);
  return found;
}

// At least one.
Result<std::vector<FoundDevice>> FindAll(const OpenClApi& api) {
  cl_uint count = 0;
  // A loader without drivers gives an error in place of no platforms.
  const cl_int error = api.GetPlatformIDs(0, nullptr, &count);
  if (error != CL_SUCCESS || count == 0) {
    return Error(Code::kNotFound, "no OpenCL: its loader finds no driver ({})", error);
  }
  std::vector<cl_platform_id> platforms(count);
  TROUPE_RETURN_IF_ERROR(
      OpenClStatus(api.GetPlatformIDs(count, platforms.data(), nullptr), "clGetPlatformIDs"));
  std::vector<FoundDevice> found;
  std::string without;
  for (const cl_platform_id platform : platforms) {
    const std::vector<cl_device_id> ids = DevicesOf(api, platform);
    for (const cl_device_id id : ids) found.push_back(Describe(api, platform, id));
    if (ids.empty()) without += (without.empty() ? "" : ", ") + NameOf(api, platform);
  }
  if (!found.empty()) return found;
  return Error(Code::kNotFound, "no OpenCL device: there are drivers ({}), but none has one",
               without);
}

}  // namespace

Result<std::vector<GpuInfo>> ListOpenClDevices() {
  TROUPE_ASSIGN_OR_RETURN(const OpenClApi* api, LoadOpenCl());
  TROUPE_ASSIGN_OR_RETURN(std::vector<FoundDevice> found, FindAll(*api));
  std::vector<GpuInfo> infos;
  for (FoundDevice& device : found) infos.push_back(std::move(device.info));
  return infos;
}

Result<std::unique_ptr<GpuDevice>> OpenOpenClDevice(std::size_t place) {
  TROUPE_ASSIGN_OR_RETURN(const OpenClApi* api, LoadOpenCl());
  TROUPE_ASSIGN_OR_RETURN(std::vector<FoundDevice> found, FindAll(*api));
  if (place >= found.size()) {
    return Error(Code::kNotFound, "no OpenCL device {}: there are {}", place, found.size());
  }
  FoundDevice& device = found[place];
  if ((device.floats & kNeededFloats) != kNeededFloats) {
    return Error(Code::kUnimplemented,
                 "{}: its driver does not promise IEEE floats (fused multiply-add, divisions "
                 "rounded once, subnormal numbers): its answers would not be the processor's",
                 device.info.name);
  }
  return OpenClDevice::Open(*api, device.id, std::move(device.info));
}

}  // namespace troupe
