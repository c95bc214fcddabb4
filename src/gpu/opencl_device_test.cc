#include "gpu/opencl.h"

#include <numeric>

#include "gpu/device_copies.h"
#include "gpu/gpu_for_test.h"

namespace troupe {
namespace {

class OpenClDevices : public GpuTest {};

std::vector<std::byte> Counting(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 256);
  return bytes;
}

TEST_F(OpenClDevices, SayWhatTheyAre) {
  const GpuInfo& info = device().info();
  EXPECT_FALSE(info.name.empty());
  EXPECT_FALSE(info.platform.empty());
  EXPECT_FALSE(info.driver.empty());
  EXPECT_EQ(info.name.find('\0'), std::string::npos);
  EXPECT_GT(info.memory, 64_MiB);
  EXPECT_GT(info.largest_buffer, 16_MiB);
}

TEST_F(OpenClDevices, APlaceThatTheListLacksIsNotFound) {
  const std::size_t count = ListOpenClDevices()->size();
  EXPECT_EQ(OpenOpenClDevice(count).status().code(), Code::kNotFound);
}

TEST_F(OpenClDevices, GiveBackTheBytesTheyWereGiven) {
  const std::vector<std::byte> bytes = Counting(100'003);
  const auto buffer = BufferWith(device(), bytes).value();
  EXPECT_EQ(buffer->size(), Bytes(bytes.size()));
  std::vector<std::byte> got(bytes.size());
  ASSERT_TRUE(ReadNow(device(), *buffer, got).ok());
  EXPECT_EQ(got, bytes);
}

TEST_F(OpenClDevices, CopyAPartToWhereItBelongs) {
  const auto buffer = BufferWith(device(), Counting(1000)).value();
  const std::vector<std::byte> part(10, std::byte{200});
  const GpuEventPtr in = device().CopyIn(GpuLane::kDemand, part, *buffer, Bytes(500), {}).value();
  std::vector<std::byte> got(20);
  const GpuEventPtr out =
      device().CopyOut(GpuLane::kPrefetch, *buffer, Bytes(495), got, {&in, 1}).value();
  ASSERT_TRUE(out->Wait().ok());
  std::vector<std::byte> right = Counting(1000);
  std::copy(part.begin(), part.end(), right.begin() + 500);
  EXPECT_EQ(got, std::vector<std::byte>(right.begin() + 495, right.begin() + 515));
  EXPECT_TRUE(in->Ended());
  EXPECT_TRUE(out->Ended());
}

TEST_F(OpenClDevices, AnotherLaneWaitsForTheEventsItIsToldOf) {
  constexpr int kRounds = 50;
  const auto buffer = device().Allocate(Bytes(64_KiB)).value();
  std::vector<std::vector<std::byte>> sent, got;
  for (int i = 0; i < kRounds; ++i) {
    sent.emplace_back(buffer->size().count(), static_cast<std::byte>(i));
    got.emplace_back(buffer->size().count());
  }
  std::vector<GpuEventPtr> after;
  for (std::size_t i = 0; i < kRounds; ++i) {
    const GpuEventPtr in =
        device().CopyIn(GpuLane::kDemand, sent[i], *buffer, Bytes(0), after).value();
    after = {device().CopyOut(GpuLane::kPrefetch, *buffer, Bytes(0), got[i], {&in, 1}).value()};
  }
  ASSERT_TRUE(after.front()->Wait().ok());
  EXPECT_EQ(got, sent);
}

TEST_F(OpenClDevices, HostMemoryIsCopiedFromAndTo) {
  const std::vector<std::byte> bytes = Counting(5000);
  const auto host = device().AllocateHost(Bytes(bytes.size())).value();
  ASSERT_EQ(host->bytes().size(), bytes.size());
  std::copy(bytes.begin(), bytes.end(), host->bytes().begin());
  const auto buffer = BufferWith(device(), host->bytes()).value();
  std::fill(host->bytes().begin(), host->bytes().end(), std::byte{0});
  ASSERT_TRUE(ReadNow(device(), *buffer, host->bytes()).ok());
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), host->bytes().begin()));
}

TEST_F(OpenClDevices, ABufferThatNoDeviceHasRoomForIsAStatus) {
  EXPECT_EQ(device().Allocate(Bytes(std::uint64_t{1} << 60)).status().code(),
            Code::kResourceExhausted);
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

TEST_F(OpenClDevices, AKernelThatAProgramLacksIsAStatus) {
  constexpr std::string_view kNames[] = {"Subtract"};
  const auto kernels = device().Build({.name = "add", .text = std::string(kAddSource)}, kNames);
  ASSERT_FALSE(kernels.ok());
  EXPECT_NE(kernels.status().message().find("Subtract"), std::string::npos);
}

}  // namespace
}  // namespace troupe
