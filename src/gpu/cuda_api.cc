#include "gpu/cuda_api.h"

#include <dlfcn.h>

#include "base/library_function.h"

namespace troupe {
namespace {

constexpr const char* kCudaDriver = "libcuda.so.1";

// The name with its version, which is what the library calls it.
#define TROUPE_TEXT_OF(name) #name
#define TROUPE_LOOK_UP(function, to) LookUp(library, TROUPE_TEXT_OF(function), to)

bool LookUpAll(void* library, CudaApi& api) {
  return TROUPE_LOOK_UP(cuGetErrorString, api.GetErrorString) && TROUPE_LOOK_UP(cuInit, api.Init) &&
         TROUPE_LOOK_UP(cuDriverGetVersion, api.DriverGetVersion) &&
         TROUPE_LOOK_UP(cuDeviceGetCount, api.DeviceGetCount) &&
         TROUPE_LOOK_UP(cuDeviceGet, api.DeviceGet) &&
         TROUPE_LOOK_UP(cuDeviceGetName, api.DeviceGetName) &&
         TROUPE_LOOK_UP(cuDeviceTotalMem, api.DeviceTotalMem) &&
         TROUPE_LOOK_UP(cuDeviceGetAttribute, api.DeviceGetAttribute) &&
         TROUPE_LOOK_UP(cuDeviceGetPCIBusId, api.DeviceGetPCIBusId) &&
         TROUPE_LOOK_UP(cuDevicePrimaryCtxRetain, api.DevicePrimaryCtxRetain) &&
         TROUPE_LOOK_UP(cuDevicePrimaryCtxRelease, api.DevicePrimaryCtxRelease) &&
         TROUPE_LOOK_UP(cuCtxSetCurrent, api.CtxSetCurrent) &&
         TROUPE_LOOK_UP(cuCtxGetStreamPriorityRange, api.CtxGetStreamPriorityRange) &&
         TROUPE_LOOK_UP(cuStreamCreateWithPriority, api.StreamCreateWithPriority) &&
         TROUPE_LOOK_UP(cuStreamDestroy, api.StreamDestroy) &&
         TROUPE_LOOK_UP(cuStreamSynchronize, api.StreamSynchronize) &&
         TROUPE_LOOK_UP(cuStreamWaitEvent, api.StreamWaitEvent) &&
         TROUPE_LOOK_UP(cuEventCreate, api.EventCreate) &&
         TROUPE_LOOK_UP(cuEventDestroy, api.EventDestroy) &&
         TROUPE_LOOK_UP(cuEventRecord, api.EventRecord) &&
         TROUPE_LOOK_UP(cuEventQuery, api.EventQuery) &&
         TROUPE_LOOK_UP(cuEventSynchronize, api.EventSynchronize) &&
         TROUPE_LOOK_UP(cuMemAlloc, api.MemAlloc) && TROUPE_LOOK_UP(cuMemFree, api.MemFree) &&
         TROUPE_LOOK_UP(cuMemHostAlloc, api.MemHostAlloc) &&
         TROUPE_LOOK_UP(cuMemFreeHost, api.MemFreeHost) &&
         TROUPE_LOOK_UP(cuMemcpyHtoDAsync, api.MemcpyHtoDAsync) &&
         TROUPE_LOOK_UP(cuMemcpyDtoHAsync, api.MemcpyDtoHAsync) &&
         TROUPE_LOOK_UP(cuModuleLoadDataEx, api.ModuleLoadDataEx) &&
         TROUPE_LOOK_UP(cuModuleUnload, api.ModuleUnload) &&
         TROUPE_LOOK_UP(cuModuleGetFunction, api.ModuleGetFunction) &&
         TROUPE_LOOK_UP(cuLaunchKernel, api.LaunchKernel);
}

#undef TROUPE_LOOK_UP
#undef TROUPE_TEXT_OF

struct LoadedCuda {
  LoadedCuda() {
    void* const library = dlopen(kCudaDriver, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      const char* const why = dlerror();
      status = Error(Code::kNotFound, "no CUDA: {}", why == nullptr ? kCudaDriver : why);
    } else if (!LookUpAll(library, api)) {
      status = Error(Code::kUnavailable, "no CUDA: {} lacks functions of CUDA 11", kCudaDriver);
    }
  }
  CudaApi api;
  Status status;
};

Code CodeOf(CUresult error) {
  switch (error) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      return Code::kResourceExhausted;
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
      return Code::kUnimplemented;
    // After one of these the process gets nothing but errors of a card.
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_DEINITIALIZED:
      return Code::kUnavailable;
    default:
      return Code::kInternal;
  }
}

}  // namespace

Result<const CudaApi*> LoadCuda() {
  static const LoadedCuda loaded;
  if (!loaded.status.ok()) return loaded.status;
  return &loaded.api;
}

Status CudaStatus(const CudaApi& api, CUresult error, std::string_view call) {
  if (error == CUDA_SUCCESS) return OkStatus();
  const char* meaning = nullptr;
  if (api.GetErrorString(error, &meaning) != CUDA_SUCCESS || meaning == nullptr) {
    meaning = "an error of CUDA";
  }
  return Error(CodeOf(error), "{}: {} ({})", call, meaning, static_cast<int>(error));
}

}  // namespace troupe
