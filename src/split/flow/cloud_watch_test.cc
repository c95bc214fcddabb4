#include "split/flow/cloud_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::HasSubstr;
using State = CloudWatch::State;

const Status kGone = Error(Code::kUnavailable, "connection refused");

TEST(CloudWatch, AsksOnceAtATimeAndAgainAfterAPause) {
  CloudWatch watch({.while_there = 100});
  EXPECT_TRUE(watch.TakeAsk(0));
  EXPECT_FALSE(watch.TakeAsk(50));
  watch.OnThere(60);
  EXPECT_TRUE(watch.usable());
  EXPECT_FALSE(watch.TakeAsk(159));
  EXPECT_TRUE(watch.TakeAsk(160));
}

TEST(CloudWatch, AsksSoonerWhereSomebodyDecidesByALoadThatIsOld) {
  CloudWatch watch({.while_there = 1000, .for_load = 100});
  EXPECT_TRUE(watch.TakeAsk(0, /*wants_load=*/true));
  watch.OnThere(60);
  EXPECT_FALSE(watch.TakeAsk(159, true));
  EXPECT_FALSE(watch.TakeAsk(160));
  EXPECT_TRUE(watch.TakeAsk(160, true));
  EXPECT_FALSE(watch.TakeAsk(300, true)) << "it is being asked";
  watch.OnThere(310);
  watch.OnLoad(390);
  EXPECT_FALSE(watch.TakeAsk(489, true)) << "an answer has told";
  EXPECT_TRUE(watch.TakeAsk(490, true));
  watch.OnSilent(kGone, 500);
  EXPECT_FALSE(watch.TakeAsk(600, true)) << "its load matters to nobody while it is away";
}

TEST(CloudWatch, AsksASilentCloudLessAndLessOften) {
  CloudWatch watch({.first_away = 10, .most_away = 30});
  Nanos now = 0;
  for (const Nanos pause : {10, 20, 30, 30}) {
    ASSERT_TRUE(watch.TakeAsk(now));
    watch.OnSilent(kGone, now);
    EXPECT_FALSE(watch.TakeAsk(now + pause - 1));
    now += pause;
  }
  ASSERT_TRUE(watch.TakeAsk(now));
  watch.OnThere(now);
  watch.OnSilent(kGone, now);  // to a request
  EXPECT_FALSE(watch.usable());
  EXPECT_TRUE(watch.TakeAsk(now + 10)) << "soon again, as it was there";
}

TEST(CloudWatch, TellsEachChangeInOneLineAndNothingTwice) {
  CloudWatch watch;
  EXPECT_EQ(watch.TakeNews(), std::nullopt);
  watch.OnSilent(kGone, 0);
  EXPECT_THAT(watch.TakeNews().value(), HasSubstr("serving alone"));
  watch.OnSilent(Error(Code::kDeadlineExceeded, "no answer in time"), 1);
  EXPECT_EQ(watch.TakeNews(), std::nullopt);
  watch.OnThere(2);
  EXPECT_THAT(watch.TakeNews().value(), HasSubstr("is there"));
  watch.OnThere(3);
  EXPECT_EQ(watch.TakeNews(), std::nullopt);
  watch.OnRefused(Error(Code::kFailedPrecondition, "it has another model"), 4);
  EXPECT_THAT(watch.TakeNews().value(), HasSubstr("another model"));
  EXPECT_EQ(watch.state(), State::kRefused);
  watch.OnRefused(Error(Code::kPermissionDenied, "it does not take the key"), 5);
  EXPECT_THAT(watch.TakeNews().value(), HasSubstr("key"));
}

}  // namespace
}  // namespace troupe
