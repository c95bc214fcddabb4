#include "troupe/gpu_figures.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

GpuFigures SomeCard() {
  return {.info = {.name = "RTX 3060",
                   .platform = "NVIDIA CUDA",
                   .driver = "580.1",
                   .memory = 12_GiB,
                   .largest_buffer = 3_GiB}};
}

TEST(GpuLine, SaysWhatWasMeasuredOfACardThatComputesTheSameBytes) {
  GpuFigures card = SomeCard();
  card.chosen = true;
  card.speeds = {.in_bytes_per_second = 24.11e9,
                 .out_bytes_per_second = 22e9,
                 .launch_seconds = 3.2e-6,
                 .round_trip_seconds = 11.04e-6};
  EXPECT_EQ(GpuLine(card),
            "card      RTX 3060 (NVIDIA CUDA), 12.0 GiB: the processor's bytes; copies 24.1 GB/s "
            "in, 22.0 GB/s out; a kernel every 3.2 us, waited for 11.0 us");
  Json record = GpuRecord(card);
  EXPECT_EQ(record["same_bytes"], Json(true));
  EXPECT_EQ(record["memory_bytes"], Json((12_GiB).count()));
  EXPECT_EQ(record["speeds"]["launch_s"], Json(3.2e-6));
}

TEST(GpuLine, SaysWhyACardIsNotUsed) {
  GpuFigures card = SomeCard();
  card.chosen = true;
  card.status = Status(Code::kFailedPrecondition, "RTX 3060 is not used: a gate's form differs");
  EXPECT_EQ(GpuLine(card),
            "card      RTX 3060 (NVIDIA CUDA), 12.0 GiB: RTX 3060 is not used: a gate's form "
            "differs");
  EXPECT_EQ(GpuRecord(card)["same_bytes"], Json(false));
  // Out of memory it was not compared.
  card.status = Status(Code::kResourceExhausted, "out of device memory");
  EXPECT_TRUE(GpuRecord(card)["same_bytes"].IsNull());
  EXPECT_EQ(GpuRecord(card)["why_not"], Json("out of device memory"));
}

TEST(GpuLine, NamesADriverOnTheProcessorWithoutMeasuringIt) {
  GpuFigures driver = SomeCard();
  driver.info.is_processor = true;
  EXPECT_EQ(GpuLine(driver),
            "card      RTX 3060 (NVIDIA CUDA), 12.0 GiB: computes on the processor, not measured");
  EXPECT_TRUE(GpuRecord(driver)["same_bytes"].IsNull());
  EXPECT_TRUE(GpuRecord(driver)["speeds"].IsNull());
}

TEST(FiguresOfGpus, OfNoneAreNone) { EXPECT_TRUE(FiguresOfGpus("none", {})->empty()); }

}  // namespace
}  // namespace troupe
