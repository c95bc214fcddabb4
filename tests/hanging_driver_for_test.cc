// An OpenCL that hangs, for gpu_command_test.py: as long as it is loaded, or as long as it is asked
// which drivers there are, by what TROUPE_HANGS_WHERE says. It has the functions of OpenCL 1.2 that
// src/gpu/opencl_api.cc looks up, and no device.
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace {

void HangWhere(std::string_view place) {
  const char* const where = std::getenv("TROUPE_HANGS_WHERE");
  while (where != nullptr && where == place) sleep(1);
}

[[gnu::constructor]] void Load() { HangWhere("load"); }

}  // namespace

extern "C" {

int clGetPlatformIDs(unsigned, void*, unsigned* count) {
  HangWhere("list");
  *count = 0;
  return 0;
}

#define FUNCTION(name) \
  int name() { return -1; }
FUNCTION(clGetPlatformInfo)
FUNCTION(clGetDeviceIDs)
FUNCTION(clGetDeviceInfo)
FUNCTION(clCreateContext)
FUNCTION(clReleaseContext)
FUNCTION(clCreateCommandQueue)
FUNCTION(clReleaseCommandQueue)
FUNCTION(clCreateBuffer)
FUNCTION(clReleaseMemObject)
FUNCTION(clCreateProgramWithSource)
FUNCTION(clBuildProgram)
FUNCTION(clGetProgramBuildInfo)
FUNCTION(clReleaseProgram)
FUNCTION(clCreateKernel)
FUNCTION(clSetKernelArg)
FUNCTION(clReleaseKernel)
FUNCTION(clEnqueueNDRangeKernel)
FUNCTION(clEnqueueReadBuffer)
FUNCTION(clEnqueueWriteBuffer)
FUNCTION(clEnqueueMapBuffer)
FUNCTION(clEnqueueUnmapMemObject)
FUNCTION(clFlush)
FUNCTION(clFinish)
FUNCTION(clWaitForEvents)
FUNCTION(clGetEventInfo)
FUNCTION(clReleaseEvent)

}  // extern "C"
