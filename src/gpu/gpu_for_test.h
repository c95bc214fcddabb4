// The device that tests use: the first one that opens, PoCL on a machine without a card. Its
// answers are compared with the scalar truth bit for bit, a NaN with any other.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include "gpu/opencl.h"

namespace troupe {

class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto infos = ListOpenClDevices();
    if (!infos.ok()) GTEST_SKIP() << infos.status().message();
    for (std::size_t i = 0; i < infos->size() && device_ == nullptr; ++i) {
      auto opened = OpenOpenClDevice(i);
      if (opened.ok()) device_ = std::move(opened).value();
    }
    if (device_ == nullptr) {
      GTEST_SKIP() << "no OpenCL device opens, of " << infos->size() << "; pocl-opencl-icd has one";
    }
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
