#include "split/codec/state_frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::HasSubstr;

StateFrame RandomFrame(Rng& rng) {
  StateFrame frame{.layer = static_cast<std::uint32_t>(rng.Below(100)),
                   .width = static_cast<std::uint32_t>(1 + rng.Below(200)),
                   .code = {.form = static_cast<StateForm>(rng.Below(3))},
                   .basis = rng.Next(),
                   .first = static_cast<std::uint32_t>(rng.Below(kMostStatePosition + 1)),
                   .rows = static_cast<std::uint32_t>(1 + rng.Below(9))};
  frame.kept = static_cast<std::uint32_t>(rng.Below(frame.width));
  frame.code.rank = static_cast<std::uint32_t>(rng.Below(frame.width - frame.kept + 1));
  return frame;
}

TEST(StateFrame, IsReadAsItWasWritten) {
  Rng rng(TestSeed());
  for (int round = 0; round < 500; ++round) {
    const StateFrame frame = RandomFrame(rng);
    const std::vector<std::byte> message = NewFrame(frame);
    ASSERT_EQ(message.size(), kStateFrameBytes + frame.rows * frame.row_bytes());
    ASSERT_EQ(ReadFrame(message).value(), frame);
  }
}

TEST(StateFrame, OfAnEntropyCoderHasFewerBytesThanItsRowsAndNoFloats) {
  const StateFrame frame{.layer = 2,
                         .width = 8,
                         .kept = 1,
                         .code = {.rank = 3, .form = StateForm::kInt8, .rans = true},
                         .basis = 7,
                         .first = 16,
                         .rows = 2};
  std::vector<std::byte> message = NewFrame(frame);
  ASSERT_EQ(message.size(), kStateFrameBytes);
  message.resize(kStateFrameBytes + frame.rows_bytes() - 1);
  EXPECT_EQ(ReadFrame(message).value(), frame);
  message[5] = std::byte{0};
  EXPECT_THAT(ReadFrame(message).status().message(), HasSubstr("floats by an entropy coder"));
  message[5] = std::byte{1};
  message.resize(message.size() + 1);
  EXPECT_THAT(ReadFrame(message).status().message(),
              HasSubstr("fewer than 26 expected for 2 rows"));
}

TEST(StateFrame, SaysWhatIsWrongWithIt) {
  const StateFrame good{.layer = 2,
                        .width = 8,
                        .kept = 1,
                        .code = {.rank = 3, .form = StateForm::kInt8},
                        .basis = 7,
                        .first = 16,
                        .rows = 2};
  const auto refusal = [&good](std::size_t at, std::uint32_t word, std::size_t bytes = 4) {
    std::vector<std::byte> message = NewFrame(good);
    std::memcpy(message.data() + at, &word, bytes);
    const Status status = ReadFrame(message).status();
    EXPECT_EQ(status.code(), Code::kDataLoss);
    return status.message();
  };
  EXPECT_THAT(refusal(0, 0), HasSubstr("do not begin with TRST"));
  EXPECT_THAT(refusal(4, 9, 1), HasSubstr("version 9, 1 or 2 expected"));
  EXPECT_THAT(refusal(5, 3, 1), HasSubstr("form 3, 0 to 2"));
  EXPECT_THAT(refusal(8, 0), HasSubstr("width 0, 1 to"));
  EXPECT_THAT(refusal(8, 1 << 21), HasSubstr("width 2097152"));
  EXPECT_THAT(refusal(12, 8), HasSubstr("8 channels kept apart, fewer than 8"));
  EXPECT_THAT(refusal(20, 8), HasSubstr("rank 8, 0 to 7"));
  EXPECT_THAT(refusal(24, kMostStatePosition + 1), HasSubstr("position"));
  EXPECT_THAT(refusal(28, 0), HasSubstr("0 rows, 1 to"));
  EXPECT_THAT(refusal(28, 3), HasSubstr("expected for 3 rows"));
  std::vector<std::byte> cut = NewFrame(good);
  cut.pop_back();
  EXPECT_THAT(ReadFrame(cut).status().message(), HasSubstr("expected for 2 rows"));
  cut.resize(kStateFrameBytes - 1);
  EXPECT_THAT(ReadFrame(cut).status().message(), HasSubstr("a head of 40 expected"));
}

}  // namespace
}  // namespace troupe
