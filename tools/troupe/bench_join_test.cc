#include "troupe/bench_join.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace troupe {
namespace {

using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::IsEmpty;
using ::testing::Not;

const std::string kJoinModel = TROUPE_SOURCE_DIR "/models/tiny-qwen2moe-q8_0.gguf";
const std::vector<TokenId> kJoinText = {5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

TEST(GapsWithin, CountsTheGapsThatTheSpanBeginsAndEndsIn) {
  const std::vector<Nanos> times = {0, 1'000'000'000, 3'000'000'000, 6'000'000'000, 10'000'000'000};
  EXPECT_THAT(GapsWithin(times, 2'000'000'000, 5'000'000'000),
              ElementsAre(DoubleNear(2, 1e-9), DoubleNear(3, 1e-9)));
  EXPECT_THAT(GapsWithin(times, 1'000'000'000, 3'000'000'000), ElementsAre(DoubleNear(2, 1e-9)));
  EXPECT_THAT(GapsWithin(times, 11'000'000'000, 12'000'000'000), IsEmpty());
}

TEST(TimeJoin, MeasuresTheDecodesBesideAPromptAndThePromptAlone) {
  const auto engine =
      Engine::Open(kJoinModel, {.threads = 1, .context = 400, .sequences = kJoinedSequences + 1})
          .value();
  const JoinTimes times = TimeJoin(*engine, kJoinText, {.prompt = 4, .joined_prompt = 200}).value();
  EXPECT_THAT(times.gaps, Not(IsEmpty()));
  EXPECT_THAT(times.gaps, Each(Gt(0)));
  EXPECT_THAT(times.gaps_before, Not(IsEmpty()));
  EXPECT_GT(times.prompt_seconds, 0);
  EXPECT_GT(times.prompt_seconds_alone, 0);
}

TEST(TimeJoin, SaysThatTheContextIsTooShortForTheDecodesToGoOn) {
  const auto engine =
      Engine::Open(kJoinModel, {.threads = 1, .context = 20, .sequences = kJoinedSequences + 1})
          .value();
  const Status status = TimeJoin(*engine, kJoinText, {.prompt = 12, .joined_prompt = 10}).status();
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_THAT(status.message(), ::testing::HasSubstr("--ctx"));
}

}  // namespace
}  // namespace troupe
