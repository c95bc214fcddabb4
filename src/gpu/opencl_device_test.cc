// What OpenCL's devices do beside what every device does (gpu_device_test.cc): they compile text.
#include "gpu/opencl.h"

#include <numeric>

#include "gpu/device_copies.h"
#include "gpu/gpu_for_test.h"

namespace troupe {
namespace {

class OpenClDevices : public GpuTest {};

TEST_F(OpenClDevices, APlaceThatTheListLacksIsNotFound) {
  const std::size_t count = ListOpenClDevices()->size();
  EXPECT_EQ(OpenOpenClDevice(count).status().code(), Code::kNotFound);
}

constexpr std::string_view kAddSource =
    "__kernel void Add(__global uint* numbers, uint step, ulong twice, __global uint* none) {\n"
    "  numbers[get_global_id(0) + 4 * get_global_id(1)] += none ? 1000 : step + (uint)twice;\n"
    "}\n";

TEST_F(OpenClDevices, RunTheirKernelsWithTheArgumentsOfALaunch) {
  constexpr std::string_view kNames[] = {"Add"};
  const auto kernels =
      device().Build({.name = "add", .text = std::string(kAddSource)}, kNames).value();
  std::vector<std::uint32_t> numbers(24);
  std::iota(numbers.begin(), numbers.end(), 0);
  const auto buffer = BufferWith(device(), std::as_bytes(std::span(numbers))).value();
  const GpuBuffer* const none = nullptr;
  const GpuLaunch launch{.kernel = kernels[0].get(),
                         .arguments = {buffer.get(), std::uint32_t{5}, std::uint64_t{10}, none},
                         .groups = {2, 5},
                         .group_size = 2};
  ASSERT_TRUE(device().Launch(launch, {}).value()->Wait().ok());
  std::vector<std::uint32_t> got(24);
  ASSERT_TRUE(ReadNow(device(), *buffer, std::as_writable_bytes(std::span(got))).ok());
  for (std::uint32_t i = 0; i < 24; ++i) EXPECT_EQ(got[i], i < 20 ? i + 15 : i);
}

TEST_F(OpenClDevices, AProgramThatDoesNotCompileIsOneLineThatSaysWhy) {
  const Status status =
      device().Build({.name = "nonsense", .text = "__kernel int x y;\nand more"}, {}).status();
  EXPECT_EQ(status.code(), Code::kInternal);
  EXPECT_NE(status.message().find("nonsense"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("error: "), std::string::npos) << status.message();
  EXPECT_EQ(status.message().find('\n'), std::string::npos) << status.message();
}

}  // namespace
}  // namespace troupe
