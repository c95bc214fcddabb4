// The device that tests use: the first one that opens, PoCL on a machine without a card. Its
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
#include <vector>

#include "gpu/opencl.h"

namespace troupe {

class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string why = WhyNoneOpens();
    if (why.empty()) return;
    if (std::getenv("TROUPE_EXPECT_GPU") != nullptr) FAIL() << why << " (TROUPE_EXPECT_GPU)";
    GTEST_SKIP() << why << "; pocl-opencl-icd has a device";
  }

  GpuDevice& device() { return *device_; }

 private:
  // Empty: one did.
  std::string WhyNoneOpens() {
    const auto infos = ListOpenClDevices();
    if (!infos.ok()) return infos.status().message();
    std::string why = "no device opens";
    for (std::size_t i = 0; i < infos->size(); ++i) {
      auto opened = OpenOpenClDevice(i);
      if (opened.ok()) {
        device_ = std::move(opened).value();
        return "";
      }
      why += "; " + opened.status().message();
    }
    return why;
  }

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
