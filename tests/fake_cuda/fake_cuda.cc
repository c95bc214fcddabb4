// The functions of CUDA's driver API that src/gpu/cuda_*.cc call, on the processor: libcuda.so.1
// for tests. Work is done later, on a thread a stream. PTX is read for what a kernel takes; what it
// computes is the same source compiled for the processor. What tests may ask of it, and how it
// fails, is in gpu/fake_cuda_for_test.h.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "fake_cuda/context.h"
#include "fake_cuda/items.h"
#include "gpu/cuda_images.h"

using troupe::AddFakeWork;
using troupe::CurrentFakeContext;
using troupe::FakeContextOf;
using troupe::IsFakeCard;
using troupe::LostBy;
using troupe::SoundFakeContext;
using troupe::TheFakeCuda;

#define RETURN_IF_ERROR(call) \
  if (const CUresult result_of_call = (call); result_of_call != CUDA_SUCCESS) return result_of_call

namespace {

std::atomic<bool> is_started = false;

CUresult Started() { return is_started ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED; }

// The name of the program whose PTX it is.
std::string ProgramOf(std::string_view ptx) {
  for (const troupe::CudaImage& image : troupe::CudaImages()) {
    if (image.ptx == ptx) return std::string(image.program);
  }
  return "";
}

// What PTX and processor say of a kernel must be the same, or one of them is of another source.
bool IsSameKernel(const troupe::PtxEntry& entry, const troupe::FakeKernel& kernel) {
  if (entry.parameters.size() != kernel.parameters.size() || entry.most_items == 0) return false;
  for (std::size_t i = 0; i < entry.parameters.size(); ++i) {
    if (entry.parameters[i] != kernel.parameters[i].bytes) return false;
  }
  return true;
}

CUresult RunGroups(CUctx_st& context, const CUfunc_st& function, unsigned width, unsigned height,
                   unsigned items, const std::vector<std::uint64_t>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::lock_guard lock(context.mu);
    const bool points = function.kernel->parameters[i].is_pointer && values[i] != 0;
    if (points && context.memory.Find(values[i], 1) == nullptr) return CUDA_ERROR_ILLEGAL_ADDRESS;
  }
  static thread_local troupe::FakeGroup group;
  for (unsigned y = 0; y < height; ++y) {
    for (unsigned x = 0; x < width; ++x) {
      troupe::fake_item.group[0] = x;
      troupe::fake_item.group[1] = y;
      group.Run(items, (x + y) % 2 == 1, [&] { function.kernel->call(values.data()); });
    }
  }
  return CUDA_SUCCESS;
}

template <typename Copy>
CUresult AddCopy(CUdeviceptr address, std::size_t bytes, CUstream stream,
                 std::atomic<std::uint64_t>& count, Copy copy) {
  CUcontext context = nullptr;
  RETURN_IF_ERROR(SoundFakeContext(context));
  std::byte* card = nullptr;
  {
    const std::lock_guard lock(context->mu);
    card = context->memory.Find(address, bytes);
  }
  if (card == nullptr || stream == nullptr || stream->context != context) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  ++count;
  AddFakeWork(stream, [card, copy, delay = TheFakeCuda().copies_take_us.load()] {
    std::this_thread::sleep_for(std::chrono::microseconds(delay));
    copy(card);
    return CUDA_SUCCESS;
  });
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

troupe::FakeCuda* TroupeFakeCuda() { return &TheFakeCuda(); }

CUresult cuGetErrorString(CUresult error, const char** text) {
  *text = "an error that the fake driver gives";
  if (error == CUDA_ERROR_OUT_OF_MEMORY) *text = "out of memory";
  if (error == CUDA_ERROR_LAUNCH_FAILED) *text = "unspecified launch failure";
  return CUDA_SUCCESS;
}

CUresult cuInit(unsigned) {
  troupe::WaitWhile(TheFakeCuda().init_hangs);
  const auto error = static_cast<CUresult>(TheFakeCuda().init_error.load());
  if (error == CUDA_SUCCESS) is_started = true;
  return error;
}

CUresult cuDriverGetVersion(int* version) {
  *version = 13000;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  RETURN_IF_ERROR(Started());
  *count = TheFakeCuda().devices;
  return static_cast<CUresult>(TheFakeCuda().count_error.load());
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  RETURN_IF_ERROR(Started());
  if (!IsFakeCard(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int size, CUdevice device) {
  if (!IsFakeCard(device)) return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(name, static_cast<std::size_t>(size), "a fake card, computed on the processor");
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(std::size_t* bytes, CUdevice device) {
  if (!IsFakeCard(device)) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = TheFakeCuda().memory;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  if (!IsFakeCard(device)) return CUDA_ERROR_INVALID_DEVICE;
  *value = 0;
  if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) {
    *value = TheFakeCuda().capability / 10;
  } else if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) {
    *value = TheFakeCuda().capability % 10;
  }
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char* text, int size, CUdevice device) {
  if (!IsFakeCard(device)) return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(text, static_cast<std::size_t>(size), "0000:%02X:00.0", device + 1);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  RETURN_IF_ERROR(Started());
  if (!IsFakeCard(device)) return CUDA_ERROR_INVALID_DEVICE;
  CUctx_st& of_device = FakeContextOf(device);
  const std::lock_guard lock(of_device.mu);
  ++of_device.retained;
  ++TheFakeCuda().contexts;
  *context = &of_device;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  CUctx_st& context = FakeContextOf(device);
  const std::lock_guard lock(context.mu);
  if (context.retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
  --TheFakeCuda().contexts;
  --context.retained;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
  troupe::SetFakeContext(context);
  return CurrentFakeContext(context);
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  CUcontext context = nullptr;
  RETURN_IF_ERROR(SoundFakeContext(context));
  *least = 0;
  *greatest = -5;
  return CUDA_SUCCESS;
}

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  CUcontext context = nullptr;
  RETURN_IF_ERROR(SoundFakeContext(context));
  // One that waits for the default stream would not be a lane of its own.
  if (flags != CU_STREAM_NON_BLOCKING || priority > 0 || priority < -5) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *stream = new CUstream_st{.context = context};
  const std::lock_guard lock(context->mu);
  context->streams.insert(*stream);
  ++TheFakeCuda().streams;
  return CUDA_SUCCESS;
}

CUresult cuStreamDestroy(CUstream stream) {
  CUcontext context = nullptr;
  RETURN_IF_ERROR(CurrentFakeContext(context));
  {
    const std::lock_guard lock(context->mu);
    if (context->streams.erase(stream) == 0) return CUDA_ERROR_INVALID_HANDLE;
  }
  delete stream;
  --TheFakeCuda().streams;
  return LostBy();
}

CUresult cuStreamSynchronize(CUstream stream) {
  CUcontext context = nullptr;
  RETURN_IF_ERROR(CurrentFakeContext(context));
  stream->work.Synchronize();
  return LostBy();
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  CUcontext context = nullptr;
  RETURN_IF_ERROR(SoundFakeContext(context));
  ++TheFakeCuda().waits;
  if (event->mark != nullptr) stream->work.Add([mark = event->mark] { mark->Wait(); });
  return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent* event, unsigned) {
  CUcontext context = nullptr;
  RETURN_IF_ERROR(SoundFakeContext(context));
  *event = new CUevent_st;
  ++TheFakeCuda().events;
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent event) {
  CUcontext context = nullptr;
  RETURN_IF_ERROR(CurrentFakeContext(context));
  delete event;
  --TheFakeCuda().events;
  return LostBy();
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  CUcontext context = nullptr;
  RETURN_IF_ERROR(SoundFakeContext(context));
  if (TheFakeCuda().records_fail) return CUDA_ERROR_UNKNOWN;
  event->mark = std::make_shared<troupe::FakeMark>();
  stream->work.Add([mark = event->mark] { mark->Reach(); });
  return CUDA_SUCCESS;
}

CUresult cuEventQuery(CUevent event) {
  CUcontext context = nullptr;
  RETURN_IF_ERROR(SoundFakeContext(context));
  const bool ended = event->mark == nullptr || event->mark->IsReached();
  return ended ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuEventSynchronize(CUevent event) {
  CUcontext context = nullptr;
  RETURN_IF_ERROR(CurrentFakeContext(context));
  if (event->mark != nullptr) event->mark->Wait();
  return LostBy();
}

CUresult cuMemAlloc(CUdeviceptr* address, std::size_t bytes) {
  CUcontext context = nullptr;
  RETURN_IF_ERROR(SoundFakeContext(context));
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(context->mu);
  *address = context->memory.Allocate(bytes, TheFakeCuda().memory - TheFakeCuda().taken);
  if (*address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  ++TheFakeCuda().buffers;
  return CUDA_SUCCESS;
}

// After all work, as the driver does.
CUresult cuMemFree(CUdeviceptr address) {
  CUcontext context = nullptr;
  RETURN_IF_ERROR(CurrentFakeContext(context));
  std::set<CUstream> streams;
  {
    const std::lock_guard lock(context->mu);
    streams = context->streams;
  }
  for (const CUstream stream : streams) stream->work.Synchronize();
  const std::lock_guard lock(context->mu);
  if (!context->memory.Free(address)) return CUDA_ERROR_INVALID_VALUE;
  --TheFakeCuda().buffers;
  return LostBy();
}

CUresult cuMemHostAlloc(void** memory, std::size_t bytes, unsigned) {
  CUcontext context = nullptr;
  RETURN_IF_ERROR(SoundFakeContext(context));
  constexpr std::size_t kMost = std::size_t{1} << 40;  // beyond which sanitizers end the program
  if (bytes > kMost) return CUDA_ERROR_OUT_OF_MEMORY;
  *memory = std::malloc(bytes);
  if (*memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  ++TheFakeCuda().host_buffers;
  return CUDA_SUCCESS;
}

CUresult cuMemFreeHost(void* memory) {
  CUcontext context = nullptr;
  RETURN_IF_ERROR(CurrentFakeContext(context));
  std::free(memory);
  --TheFakeCuda().host_buffers;
  return LostBy();
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream) {
  return AddCopy(to, bytes, stream, TheFakeCuda().copies_in, [from, bytes](std::byte* card) {
    if (bytes > 0) std::memcpy(card, from, bytes);
  });
}

CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return AddCopy(from, bytes, stream, TheFakeCuda().copies_out, [to, bytes](const std::byte* card) {
    if (bytes > 0) std::memcpy(to, card, bytes);
  });
}

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count,
                            CUjit_option* options, void** values) {
  CUcontext context = nullptr;
  RETURN_IF_ERROR(SoundFakeContext(context));
  troupe::WaitWhile(TheFakeCuda().compiling_hangs);
  const std::string_view ptx(static_cast<const char*>(image));
  const std::vector<troupe::PtxEntry> entries = troupe::ReadPtx(ptx);
  auto error = static_cast<CUresult>(TheFakeCuda().compiling_error.load());
  if (error == CUDA_SUCCESS && entries.empty()) error = CUDA_ERROR_INVALID_PTX;
  const std::string program = ProgramOf(ptx);
  if (error == CUDA_SUCCESS && program.empty()) error = CUDA_ERROR_INVALID_IMAGE;
  if (error != CUDA_SUCCESS) {
    for (unsigned i = 0; i < count; ++i) {
      if (options[i] != CU_JIT_ERROR_LOG_BUFFER) continue;
      std::strcpy(static_cast<char*>(values[i]), "the fake driver does not take it\nfor a reason");
    }
    return error;
  }
  *module = new CUmod_st{.program = program};
  for (const troupe::PtxEntry& entry : entries) {
    const troupe::FakeKernel* const kernel = troupe::FindFakeKernel(program, entry.name);
    if (kernel == nullptr || !IsSameKernel(entry, *kernel)) {
      std::fprintf(stderr, "fake CUDA: PTX and processor have other kernels %s of %s\n",
                   entry.name.c_str(), program.c_str());
      delete *module;
      return CUDA_ERROR_INVALID_IMAGE;
    }
    (*module)->functions[entry.name] = {.entry = entry, .kernel = kernel};
  }
  ++TheFakeCuda().modules;
  return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module) {
  CUcontext context = nullptr;
  RETURN_IF_ERROR(CurrentFakeContext(context));
  delete module;
  --TheFakeCuda().modules;
  return LostBy();
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  CUcontext context = nullptr;
  RETURN_IF_ERROR(SoundFakeContext(context));
  const auto found = module->functions.find(name);
  if (found == module->functions.end()) return CUDA_ERROR_NOT_FOUND;
  *function = &found->second;
  return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned width, unsigned height, unsigned depth,
                        unsigned items, unsigned items_y, unsigned items_z, unsigned shared,
                        CUstream stream, void** arguments, void** extra) {
  CUcontext context = nullptr;
  RETURN_IF_ERROR(SoundFakeContext(context));
  constexpr unsigned kMostRowsOfGroups = 65535;
  if (depth != 1 || items_y != 1 || items_z != 1 || shared != 0 || extra != nullptr) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  if (width == 0 || height == 0 || height > kMostRowsOfGroups || items == 0 ||
      items > function->entry.most_items || stream == nullptr || stream->context != context) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  // Arguments are read now: who launches may write over them.
  std::vector<std::uint64_t> values;
  for (std::size_t i = 0; i < function->entry.parameters.size(); ++i) {
    values.push_back(0);
    std::memcpy(&values.back(), arguments[i], function->entry.parameters[i]);
  }
  ++TheFakeCuda().launches;
  AddFakeWork(stream, [context, function, width, height, items, values = std::move(values)] {
    return RunGroups(*context, *function, width, height, items, values);
  });
  return CUDA_SUCCESS;
}

}  // extern "C"
