#include "gpu/opencl_api.h"

#include <dlfcn.h>

#include "base/library_function.h"

namespace troupe {
namespace {

constexpr const char* kOpenClLoader = "libOpenCL.so.1";

bool LookUpAll(void* library, OpenClApi& api) {
  return LookUp(library, "clGetPlatformIDs", api.GetPlatformIDs) &&
         LookUp(library, "clGetPlatformInfo", api.GetPlatformInfo) &&
         LookUp(library, "clGetDeviceIDs", api.GetDeviceIDs) &&
         LookUp(library, "clGetDeviceInfo", api.GetDeviceInfo) &&
         LookUp(library, "clCreateContext", api.CreateContext) &&
         LookUp(library, "clReleaseContext", api.ReleaseContext) &&
         LookUp(library, "clCreateCommandQueue", api.CreateCommandQueue) &&
         LookUp(library, "clReleaseCommandQueue", api.ReleaseCommandQueue) &&
         LookUp(library, "clCreateBuffer", api.CreateBuffer) &&
         LookUp(library, "clReleaseMemObject", api.ReleaseMemObject) &&
         LookUp(library, "clCreateProgramWithSource", api.CreateProgramWithSource) &&
         LookUp(library, "clBuildProgram", api.BuildProgram) &&
         LookUp(library, "clGetProgramBuildInfo", api.GetProgramBuildInfo) &&
         LookUp(library, "clReleaseProgram", api.ReleaseProgram) &&
         LookUp(library, "clCreateKernel", api.CreateKernel) &&
         LookUp(library, "clSetKernelArg", api.SetKernelArg) &&
         LookUp(library, "clReleaseKernel", api.ReleaseKernel) &&
         LookUp(library, "clEnqueueNDRangeKernel", api.EnqueueNDRangeKernel) &&
         LookUp(library, "clEnqueueReadBuffer", api.EnqueueReadBuffer) &&
         LookUp(library, "clEnqueueWriteBuffer", api.EnqueueWriteBuffer) &&
         LookUp(library, "clEnqueueMapBuffer", api.EnqueueMapBuffer) &&
         LookUp(library, "clEnqueueUnmapMemObject", api.EnqueueUnmapMemObject) &&
         LookUp(library, "clFlush", api.Flush) && LookUp(library, "clFinish", api.Finish) &&
         LookUp(library, "clWaitForEvents", api.WaitForEvents) &&
         LookUp(library, "clGetEventInfo", api.GetEventInfo) &&
         LookUp(library, "clReleaseEvent", api.ReleaseEvent);
}

struct LoadedOpenCl {
  LoadedOpenCl() {
    void* const library = dlopen(kOpenClLoader, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      const char* const why = dlerror();
      status = Error(Code::kNotFound, "no OpenCL: {}", why == nullptr ? kOpenClLoader : why);
    } else if (!LookUpAll(library, api)) {
      status = Error(Code::kNotFound, "no OpenCL: {} lacks functions of OpenCL 1.2", kOpenClLoader);
    }
  }
  OpenClApi api;
  Status status;
};

std::string_view MeaningOf(cl_int error) {
  switch (error) {
    case CL_DEVICE_NOT_AVAILABLE:
      return "the device is not available";
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
      return "out of device memory";
    case CL_OUT_OF_RESOURCES:
      return "the device is out of resources";
    case CL_OUT_OF_HOST_MEMORY:
      return "out of memory";
    case CL_BUILD_PROGRAM_FAILURE:
      return "the program does not compile";
    case CL_INVALID_BUFFER_SIZE:
      return "a buffer larger than the device allows";
    case CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST:
      return "work before it failed";
    default:
      return "an error of OpenCL";
  }
}

Code CodeOf(cl_int error) {
  switch (error) {
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_RESOURCES:
    case CL_OUT_OF_HOST_MEMORY:
    case CL_INVALID_BUFFER_SIZE:
      return Code::kResourceExhausted;
    case CL_DEVICE_NOT_AVAILABLE:
    case CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST:
      return Code::kUnavailable;
    default:
      return Code::kInternal;
  }
}

}  // namespace

Result<const OpenClApi*> LoadOpenCl() {
  static const LoadedOpenCl loaded;
  if (!loaded.status.ok()) return loaded.status;
  return &loaded.api;
}

Status OpenClStatus(cl_int error, std::string_view call) {
  if (error == CL_SUCCESS) return OkStatus();
  return Error(CodeOf(error), "{}: {} ({})", call, MeaningOf(error), error);
}

}  // namespace troupe
