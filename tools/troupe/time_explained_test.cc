#include "troupe/time_explained.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::HasSubstr;

constexpr Nanos kMs = 1'000'000;

// 10 ms, of which the second layer waits 3 for one expert, which is read for 4.
PassTimes OneToken() {
  PassTimes times(4);
  times.OnPassBegins(OneGroup(0, Phase::kDecode, 1), 100 * kMs);
  times.OnAsked(0, 101 * kMs);
  times.OnAsked(1, 104 * kMs);
  times.OnReads({104 * kMs, 108 * kMs}, 8'000'000);
  times.OnStalled({105 * kMs, 108 * kMs});
  times.OnMiss({.id = {1, 17},
                .foresight = {.ahead = 1,
                              .odds = 0.75,
                              .lead_seconds = 3e-3,
                              .load_seconds = 4e-3,
                              .reads_ahead = true,
                              .was_absent = true},
                .bytes = 8_MiB,
                .load_seconds = 4e-3,
                .waited_seconds = 3e-3});
  times.OnPassEnds(110 * kMs);
  return times;
}

TEST(TimeExplained, TellsLayerByLayerWhatWasWaitedForAndWhyItWasNotReadEarlier) {
  const std::string text =
      ExplainTime(OneToken().passes().front(), {.medium = "container by io_uring"});
  EXPECT_THAT(text, HasSubstr("token 1 took 10.00 ms: 6.00 computing, 1.00 computing while "
                              "reading, 3.00 waiting"));
  EXPECT_THAT(text, HasSubstr("      1         3.00       3.00\n"
                              "      expert 17, 8.0 MiB from container by io_uring: waited 3.00 "
                              "of 4.00 ms; predicted too late: by layer 0, with odds of 0.75"));
}

TEST(TimeExplained, TheTimelineHasALaneForComputingAndOneForTheDisk) {
  const std::string svg =
      TimelineSvg(OneToken(), 8, "a model", {.medium = "disk", .bytes_per_second = 4e9});
  EXPECT_THAT(svg, HasSubstr("token 1"));
  EXPECT_THAT(svg, HasSubstr("10.0 ms, waited 3.0"));
  // 900 wide for 10 ms: computing until 5 ms, waiting until 8; read for 2 of the 4 ms.
  EXPECT_THAT(svg, HasSubstr("M170.00 96.0h450.00"));
  EXPECT_THAT(svg, HasSubstr("M620.00 96.0h270.00"));
  EXPECT_THAT(svg, HasSubstr("M530.00 113.0h180.00"));
  EXPECT_THAT(svg, HasSubstr("M710.00 113.0h180.00"));
  EXPECT_THAT(svg, HasSubstr("prefers-color-scheme: dark"));
}

TEST(TimeExplained, ATimelineOfNothingSaysSo) {
  EXPECT_THAT(TimelineSvg(PassTimes(4), 8, "a model", {}), HasSubstr("nothing to show"));
}

}  // namespace
}  // namespace troupe
