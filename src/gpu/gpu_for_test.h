// The device that tests use: the first one that opens, PoCL on a machine without a card. With
// TROUPE_TEST_GPU=cuda or opencl in the environment it is the first one of these. Its
// answers are compared with the scalar truth bit for bit, a NaN with any other. Where none opens a
// test is skipped, or fails with TROUPE_EXPECT_GPU in the environment, as .ci/run has it.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/listing.h"

namespace troupe {

inline bool IsForTest(const ListedGpu& gpu) {
  const char* const api = std::getenv("TROUPE_TEST_GPU");
  if (api == nullptr) return true;
  return gpu.info.api == (std::string_view(api) == "cuda" ? GpuApi::kCuda : GpuApi::kOpenCl);
}

inline Result<std::unique_ptr<GpuDevice>> OpenGpuForTest() {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<ListedGpu> found, FindGpus());
  std::string why = "no device opens";
  for (const ListedGpu& gpu : found) {
    if (!IsForTest(gpu)) continue;
    auto opened = OpenGpu(gpu.ways.front());
    if (opened.ok()) return opened;
    why += "; " + opened.status().message();
  }
  return Error(Code::kNotFound, "{}", why);
}

class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = OpenGpuForTest();
    if (opened.ok()) {
      device_ = std::move(opened).value();
      return;
    }
    const std::string why = opened.status().message();
    if (std::getenv("TROUPE_EXPECT_GPU") != nullptr) FAIL() << why << " (TROUPE_EXPECT_GPU)";
    GTEST_SKIP() << why << "; pocl-opencl-icd has a device";
  }

  GpuDevice& device() { return *device_; }

 private:
  std::unique_ptr<GpuDevice> device_;
};

inline std::vector<std::uint32_t> BitsOf(std::span<const float> numbers) {
  std::vector<std::uint32_t> bits;
  for (const float number : numbers) {
    bits.push_back(std::isnan(number) ? 0x7fc00000u : std::bit_cast<std::uint32_t>(number));
  }
  return bits;
}

}  // namespace troupe
