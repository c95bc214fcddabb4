// What every device does of its interface (device.h), whichever driver it is reached through.
#include "gpu/device.h"

#include <algorithm>

#include "gpu/device_copies.h"
#include "gpu/gpu_for_test.h"
#include "gpu/kernel_source.h"
#include "gpu/kernels.h"

namespace troupe {
namespace {

class GpuDevices : public GpuTest {};

std::vector<std::byte> Counting(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 256);
  return bytes;
}

TEST_F(GpuDevices, SayWhatTheyAre) {
  const GpuInfo& info = device().info();
  EXPECT_FALSE(info.name.empty());
  EXPECT_FALSE(info.platform.empty());
  EXPECT_FALSE(info.driver.empty());
  EXPECT_EQ(info.name.find('\0'), std::string::npos);
  EXPECT_GT(info.memory, 64_MiB);
  EXPECT_GT(info.largest_buffer, 16_MiB);
}

TEST_F(GpuDevices, GiveBackTheBytesTheyWereGiven) {
  const std::vector<std::byte> bytes = Counting(100'003);
  const auto buffer = BufferWith(device(), bytes).value();
  EXPECT_EQ(buffer->size(), Bytes(bytes.size()));
  std::vector<std::byte> got(bytes.size());
  ASSERT_TRUE(ReadNow(device(), *buffer, got).ok());
  EXPECT_EQ(got, bytes);
}

TEST_F(GpuDevices, CopyAPartToWhereItBelongs) {
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

TEST_F(GpuDevices, AnotherLaneWaitsForTheEventsItIsToldOf) {
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

TEST_F(GpuDevices, HostMemoryIsCopiedFromAndTo) {
  const std::vector<std::byte> bytes = Counting(5000);
  const auto host = device().AllocateHost(Bytes(bytes.size())).value();
  ASSERT_EQ(host->bytes().size(), bytes.size());
  std::copy(bytes.begin(), bytes.end(), host->bytes().begin());
  const auto buffer = BufferWith(device(), host->bytes()).value();
  std::fill(host->bytes().begin(), host->bytes().end(), std::byte{0});
  ASSERT_TRUE(ReadNow(device(), *buffer, host->bytes()).ok());
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), host->bytes().begin()));
}

TEST_F(GpuDevices, ABufferThatNoDeviceHasRoomForIsAStatus) {
  EXPECT_EQ(device().Allocate(Bytes(std::uint64_t{1} << 60)).status().code(),
            Code::kResourceExhausted);
}

// Through kernels that every device has: a null pointer, words of 32 and 64 bits, groups in two
// dimensions.
TEST_F(GpuDevices, RunKernelsWithTheArgumentsOfALaunch) {
  const TensorType type = TensorType::kF32;
  GpuKernels kernels = GpuKernels::Build(device(), {&type, 1}).value();
  // 17 rows of one column, the numbers 1 to 17, in panels of 16 that begin 32 bytes into a buffer.
  constexpr std::uint32_t kRows = 17, kTokens = 9;
  std::vector<float> weights(8 + 32, 0.0f);
  for (std::uint32_t row = 0; row < kRows; ++row) weights[8 + row] = static_cast<float>(row + 1);
  std::vector<float> x(kTokens), bias(4 + kRows, 0.5f);
  for (std::uint32_t token = 0; token < kTokens; ++token) x[token] = static_cast<float>(10 + token);
  const auto buffer = [&](const std::vector<float>& values) {
    return BufferWith(device(), std::as_bytes(std::span(values))).value();
  };
  const auto device_weights = buffer(weights), device_x = buffer(x), device_bias = buffer(bias);
  std::vector<float> got(std::size_t{kRows} * kTokens);
  const auto out = device().Allocate(Bytes(got.size() * sizeof(float))).value();
  const GpuRows rows{device_x.get(), nullptr, kTokens, 1};
  const GpuMatrix matrix{type, kRows, 1, device_weights.get(), 32};
  for (const float added : {0.0f, 0.5f}) {
    const GpuVector with = added == 0.0f ? GpuVector{} : GpuVector{device_bias.get(), 4};
    ASSERT_TRUE(
        kernels.Multiply(matrix, with, rows, nullptr, kTokens, *out, {}).value()->Wait().ok());
    ASSERT_TRUE(ReadNow(device(), *out, std::as_writable_bytes(std::span(got))).ok());
    for (std::uint32_t i = 0; i < got.size(); ++i) {
      const std::uint32_t row = i % kRows, token = i / kRows;
      EXPECT_EQ(got[i], static_cast<float>((row + 1) * (10 + token)) + added) << i;
    }
  }
}

TEST_F(GpuDevices, AKernelThatAProgramLacksIsAStatusThatNamesIt) {
  constexpr std::string_view kNames[] = {"Subtract"};
  const auto kernels = device().Build(CommonSource(), kNames);
  ASSERT_FALSE(kernels.ok());
  EXPECT_NE(kernels.status().message().find("Subtract"), std::string::npos);
}

}  // namespace
}  // namespace troupe
