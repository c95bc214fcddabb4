// The functions of CUDA's driver API, looked up in the driver (libcuda.so.1) while the program
// runs, so that a machine without it runs the same program. Only the cuda_*.cc files include this.
#pragma once

#include <cuda.h>

#include <string_view>

#include "base/status.h"

namespace troupe {

// cuda.h gives some names a version (cuMemAlloc is cuMemAlloc_v2), and these are what is looked up.
struct CudaApi {
  decltype(&cuGetErrorString) GetErrorString = nullptr;
  decltype(&cuInit) Init = nullptr;
  decltype(&cuDriverGetVersion) DriverGetVersion = nullptr;
  decltype(&cuDeviceGetCount) DeviceGetCount = nullptr;
  decltype(&cuDeviceGet) DeviceGet = nullptr;
  decltype(&cuDeviceGetName) DeviceGetName = nullptr;
  decltype(&cuDeviceTotalMem) DeviceTotalMem = nullptr;
  decltype(&cuDeviceGetAttribute) DeviceGetAttribute = nullptr;
  decltype(&cuDeviceGetPCIBusId) DeviceGetPCIBusId = nullptr;
  decltype(&cuDevicePrimaryCtxRetain) DevicePrimaryCtxRetain = nullptr;
  decltype(&cuDevicePrimaryCtxRelease) DevicePrimaryCtxRelease = nullptr;
  decltype(&cuCtxSetCurrent) CtxSetCurrent = nullptr;
  decltype(&cuCtxGetStreamPriorityRange) CtxGetStreamPriorityRange = nullptr;
  decltype(&cuStreamCreateWithPriority) StreamCreateWithPriority = nullptr;
  decltype(&cuStreamDestroy) StreamDestroy = nullptr;
  decltype(&cuStreamSynchronize) StreamSynchronize = nullptr;
  decltype(&cuStreamWaitEvent) StreamWaitEvent = nullptr;
  decltype(&cuEventCreate) EventCreate = nullptr;
  decltype(&cuEventDestroy) EventDestroy = nullptr;
  decltype(&cuEventRecord) EventRecord = nullptr;
  decltype(&cuEventQuery) EventQuery = nullptr;
  decltype(&cuEventSynchronize) EventSynchronize = nullptr;
  decltype(&cuMemAlloc) MemAlloc = nullptr;
  decltype(&cuMemFree) MemFree = nullptr;
  decltype(&cuMemHostAlloc) MemHostAlloc = nullptr;
  decltype(&cuMemFreeHost) MemFreeHost = nullptr;
  decltype(&cuMemcpyHtoDAsync) MemcpyHtoDAsync = nullptr;
  decltype(&cuMemcpyDtoHAsync) MemcpyDtoHAsync = nullptr;
  decltype(&cuModuleLoadDataEx) ModuleLoadDataEx = nullptr;
  decltype(&cuModuleUnload) ModuleUnload = nullptr;
  decltype(&cuModuleGetFunction) ModuleGetFunction = nullptr;
  decltype(&cuLaunchKernel) LaunchKernel = nullptr;
};

// Of the driver, for as long as the program runs; kNotFound where there is none, kUnavailable where
// it lacks some.
Result<const CudaApi*> LoadCuda();

// OK, or what a call said: "cuMemAlloc: out of memory (2)".
Status CudaStatus(const CudaApi& api, CUresult error, std::string_view call);

}  // namespace troupe
