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

TEST(GpuLines, SaysWhatWasMeasuredOfACardThatComputesTheSameBytes) {
  GpuFigures card = SomeCard();
  card.chosen = true;
  card.same_bytes = true;
  card.speeds = {.in_bytes_per_second = 24.11e9,
                 .out_bytes_per_second = 22e9,
                 .launch_seconds = 3.2e-6,
                 .round_trip_seconds = 11.04e-6};
  EXPECT_EQ(GpuLines(card, {}),
            "card      RTX 3060 (NVIDIA CUDA), 12.0 GiB: the processor's bytes; copies 24.1 GB/s "
            "in, 22.0 GB/s out; a kernel every 3.2 us, waited for 11.0 us\n");
  Json record = GpuRecord(card, {});
  EXPECT_EQ(record["same_bytes"], Json(true));
  EXPECT_EQ(record["memory_bytes"], Json((12_GiB).count()));
  EXPECT_EQ(record["speeds"]["launch_s"], Json(3.2e-6));
}

TEST(GpuLines, SaysWhyACardIsNotUsed) {
  GpuFigures card = SomeCard();
  card.chosen = true;
  card.status = Status(Code::kFailedPrecondition, "RTX 3060 is not used: a gate's form differs");
  EXPECT_EQ(GpuLines(card, {}),
            "card      RTX 3060 (NVIDIA CUDA), 12.0 GiB: RTX 3060 is not used: a gate's form "
            "differs\n");
  EXPECT_TRUE(GpuRecord(card, {})["same_bytes"].IsNull());  // nobody has compared
  card.same_bytes = false;
  EXPECT_EQ(GpuRecord(card, {})["same_bytes"], Json(false));
  card.same_bytes.reset();
  card.status = Status(Code::kResourceExhausted, "out of device memory");
  EXPECT_TRUE(GpuRecord(card, {})["same_bytes"].IsNull());
  EXPECT_EQ(GpuRecord(card, {})["why_not"], Json("out of device memory"));
}

TEST(GpuLines, NamesADriverOnTheProcessorWithoutMeasuringIt) {
  GpuFigures driver = SomeCard();
  driver.info.is_processor = true;
  EXPECT_EQ(
      GpuLines(driver, {}),
      "card      RTX 3060 (NVIDIA CUDA), 12.0 GiB: computes on the processor, not measured\n");
  EXPECT_TRUE(GpuRecord(driver, {})["same_bytes"].IsNull());
  EXPECT_TRUE(GpuRecord(driver, {})["speeds"].IsNull());
}

TEST(GpuLines, HaveOneForEachShapeOfExperts) {
  GpuFigures card = SomeCard();
  card.chosen = true;
  card.speeds = GpuSpeeds();
  card.experts = {{.first_row = 45.25e-6, .further_row = 3e-6}, {.first_row = 1e-3}};
  const std::string shapes[] = {"Q4_K 1024x2048", "Q8_0 8x8"};
  const std::string lines = GpuLines(card, shapes);
  EXPECT_NE(lines.find("\n  expert  Q4_K 1024x2048: 45.2 us, a further row 3.0 us\n"),
            std::string::npos)
      << lines;
  EXPECT_NE(lines.find("\n  expert  Q8_0 8x8: 1000.0 us, a further row 0.0 us\n"),
            std::string::npos)
      << lines;
  Json experts = GpuRecord(card, shapes)["experts"];
  EXPECT_EQ(experts[0]["shape"], Json("Q4_K 1024x2048"));
  EXPECT_EQ(experts[0]["further_row_s"], Json(3e-6));
}

TEST(GpuLines, SayWhyThereIsNoCard) {
  const FoundGpus none{.why_none = Status(Code::kNotFound, "no OpenCL: built without its headers")};
  EXPECT_EQ(GpuLines(none, {}), "cards     none: no OpenCL: built without its headers\n");
  EXPECT_EQ(GpuLines(FoundGpus{.cards = {SomeCard(), SomeCard()}}, {}),
            GpuLines(SomeCard(), {}) + GpuLines(SomeCard(), {}));
}

TEST(FiguresOfGpus, OfNoneAreNoneAndNotLookedFor) {
  const FoundGpus found = FiguresOfGpus("none", {});
  EXPECT_TRUE(found.cards.empty());
  EXPECT_TRUE(found.why_none.ok());
  EXPECT_EQ(GpuLines(found, {}), "");
}

TEST(CheckGpuChoice, RefusesANameThatNoDeviceHas) {
  EXPECT_TRUE(CheckGpuChoice("auto").ok());
  EXPECT_TRUE(CheckGpuChoice("none").ok());
  EXPECT_EQ(CheckGpuChoice("no such card").code(), Code::kNotFound);
}

}  // namespace
}  // namespace troupe
