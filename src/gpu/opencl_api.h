// OpenCL's functions, looked up in the loader of drivers (libOpenCL.so.1) while the program runs,
// so that a machine without it runs the same program. Only the opencl_*.cc files include this.
#pragma once

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 120
#endif
#include <CL/cl.h>

#include <string>
#include <string_view>

#include "base/status.h"

namespace troupe {

struct OpenClApi {
  decltype(&clGetPlatformIDs) GetPlatformIDs = nullptr;
  decltype(&clGetPlatformInfo) GetPlatformInfo = nullptr;
  decltype(&clGetDeviceIDs) GetDeviceIDs = nullptr;
  decltype(&clGetDeviceInfo) GetDeviceInfo = nullptr;
  decltype(&clCreateContext) CreateContext = nullptr;
  decltype(&clReleaseContext) ReleaseContext = nullptr;
  decltype(&clCreateCommandQueue) CreateCommandQueue = nullptr;
  decltype(&clReleaseCommandQueue) ReleaseCommandQueue = nullptr;
  decltype(&clCreateBuffer) CreateBuffer = nullptr;
  decltype(&clReleaseMemObject) ReleaseMemObject = nullptr;
  decltype(&clCreateProgramWithSource) CreateProgramWithSource = nullptr;
  decltype(&clBuildProgram) BuildProgram = nullptr;
  decltype(&clGetProgramBuildInfo) GetProgramBuildInfo = nullptr;
  decltype(&clReleaseProgram) ReleaseProgram = nullptr;
  decltype(&clCreateKernel) CreateKernel = nullptr;
  decltype(&clSetKernelArg) SetKernelArg = nullptr;
  decltype(&clReleaseKernel) ReleaseKernel = nullptr;
  decltype(&clEnqueueNDRangeKernel) EnqueueNDRangeKernel = nullptr;
  decltype(&clEnqueueReadBuffer) EnqueueReadBuffer = nullptr;
  decltype(&clEnqueueWriteBuffer) EnqueueWriteBuffer = nullptr;
  decltype(&clEnqueueMapBuffer) EnqueueMapBuffer = nullptr;
  decltype(&clEnqueueUnmapMemObject) EnqueueUnmapMemObject = nullptr;
  decltype(&clFlush) Flush = nullptr;
  decltype(&clFinish) Finish = nullptr;
  decltype(&clWaitForEvents) WaitForEvents = nullptr;
  decltype(&clGetEventInfo) GetEventInfo = nullptr;
  decltype(&clReleaseEvent) ReleaseEvent = nullptr;
};

// Of the loader that was found first, for as long as the program runs; kNotFound where there is
// none.
Result<const OpenClApi*> LoadOpenCl();

// OK, or what a call said: "clCreateBuffer: out of device memory (-4)".
Status OpenClStatus(cl_int error, std::string_view call);

}  // namespace troupe
