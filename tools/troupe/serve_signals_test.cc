#include "troupe/serve_signals.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

namespace troupe {
namespace {

using Order = ServeSignals::Order;
using namespace std::chrono_literals;

TEST(ServeSignalsTest, AreTakenOneByOneAndWhatTheyMeanIsTold) {
  const ServeSignals signals;
  EXPECT_EQ(signals.Take(), std::nullopt);
  ::kill(::getpid(), SIGHUP);
  EXPECT_EQ(signals.Take(), Order::kReload);
  EXPECT_EQ(signals.Take(), std::nullopt);
  for (const int signal : {SIGTERM, SIGINT}) {
    ::kill(::getpid(), signal);
    EXPECT_EQ(signals.WaitFor(1min), Order::kEnd);
  }
}

TEST(ServeSignalsTest, WhoWaitsForTheEndLeavesAReloadAlone) {
  const ServeSignals signals;
  ::kill(::getpid(), SIGHUP);
  EXPECT_FALSE(signals.EndsWithin(1ms));
  EXPECT_FALSE(signals.EndIsPending());
  ::kill(::getpid(), SIGTERM);
  EXPECT_TRUE(signals.EndIsPending());
  EXPECT_TRUE(signals.EndIsPending());
  EXPECT_TRUE(signals.EndsWithin(1ms));
  EXPECT_FALSE(signals.EndIsPending());
  EXPECT_EQ(signals.Take(), Order::kReload);
}

TEST(ServeSignalsTest, TheEndIsTakenBeforeAReload) {
  const ServeSignals signals;
  ::kill(::getpid(), SIGHUP);
  ::kill(::getpid(), SIGTERM);
  EXPECT_EQ(signals.Take(), Order::kEnd);
  EXPECT_EQ(signals.Take(), Order::kReload);
  ::kill(::getpid(), SIGHUP);
  ::kill(::getpid(), SIGINT);
  EXPECT_EQ(signals.WaitFor(1min), Order::kEnd);
  EXPECT_EQ(signals.WaitFor(1min), Order::kReload);
}

TEST(ServeSignalsTest, OneThatNobodyTookEndsNothingAfterwards) {
  {
    const ServeSignals signals;
    ::kill(::getpid(), SIGHUP);
    ::kill(::getpid(), SIGTERM);
  }
  const ServeSignals again;
  EXPECT_EQ(again.Take(), std::nullopt);
}

TEST(ServeSignalsTest, OneThatComesToTheProcessWakesWhoWaits) {
  const ServeSignals signals;
  std::jthread sender([] { ::kill(::getpid(), SIGHUP); });
  EXPECT_EQ(signals.WaitFor(1min), Order::kReload);
}

}  // namespace
}  // namespace troupe
