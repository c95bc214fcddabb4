#include "split/flow/token_pace.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr Nanos kMilli = 1'000'000;

TEST(TokenPace, SaysWhatTheLastTokensTook) {
  TokenPace pace;
  Nanos now = 0;
  EXPECT_EQ(pace.Seconds(), 0);
  for (int i = 0; i < 100; ++i) pace.OnTokens(1, now += 10 * kMilli);
  EXPECT_DOUBLE_EQ(pace.Seconds(), 0.01);
  for (int i = 0; i < 100; ++i) pace.OnTokens(1, now += 40 * kMilli);
  EXPECT_DOUBLE_EQ(pace.Seconds(), 0.04) << "older ones are forgotten";
}

TEST(TokenPace, TheFirstTokenHasWaitedForThePrompt) {
  TokenPace pace;
  Nanos now = 60'000 * kMilli;
  for (int i = 0; i < 17; ++i) pace.OnTokens(1, now += 50 * kMilli);
  EXPECT_DOUBLE_EQ(pace.Seconds(), 0.05);
}

TEST(TokenPace, FewTokensOrAShortTimeSayNothing) {
  TokenPace few, fast;
  Nanos now = 0;
  for (int i = 0; i < 16; ++i) few.OnTokens(1, now += 1000 * kMilli);
  EXPECT_EQ(few.Seconds(), 0);
  for (int i = 0; i < 100; ++i) fast.OnTokens(1, now += kMilli);
  EXPECT_EQ(fast.Seconds(), 0) << "such an answer is over before it would be worth leaving";
}

TEST(TokenPace, TokensThatComeTogetherCountAsMany) {
  TokenPace pace;
  Nanos now = 0;
  for (int i = 0; i < 101; ++i) pace.OnTokens(5, now += 50 * kMilli);
  EXPECT_DOUBLE_EQ(pace.Seconds(), 0.01);
}

TEST(TokenPace, UntilEnoughHaveComeItIsWhatWasExpectedBeforeTheFirst) {
  TokenPace pace;
  pace.Expect(0.02);
  pace.Expect(0.03);
  EXPECT_EQ(pace.Seconds(), 0) << "what is expected of the place now is as good";
  Nanos now = 0;
  pace.OnTokens(1, now);
  pace.Expect(0.06);
  EXPECT_EQ(pace.Seconds(), 0.03) << "the place has this answer now";
  for (int i = 0; i < 20; ++i) pace.OnTokens(1, now += 50 * kMilli);
  EXPECT_DOUBLE_EQ(pace.Seconds(), 0.05);
}

TEST(TokenPace, BeginsAnewWhereTheyComeFromElsewhere) {
  TokenPace pace;
  Nanos now = 0;
  for (int i = 0; i < 100; ++i) pace.OnTokens(1, now += 10 * kMilli);
  pace.Restart();
  EXPECT_EQ(pace.Seconds(), 0);
  EXPECT_FALSE(pace.has_begun());
}

}  // namespace
}  // namespace troupe
