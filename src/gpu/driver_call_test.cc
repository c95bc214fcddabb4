#include "gpu/driver_call.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "gpu/driver_call_for_test.h"
#include "testing/no_more_threads.h"

namespace troupe {
namespace {

constexpr Nanos kAMinute = 60'000'000'000;

TEST(DriverCall, GivesWhatTheCallGivesWhichMayBeAnError) {
  const auto number = CallWithin(kAMinute, "a device", [] { return Result<int>(7); });
  EXPECT_EQ(number.value(), 7);
  const auto text = CallWithin(kAMinute, "a device", [] {
    return Result<std::unique_ptr<std::string>>(std::make_unique<std::string>("moved"));
  });
  EXPECT_EQ(**text, "moved");
  const Status status =
      CallWithin(kAMinute, "a device", [] { return Error(Code::kNotFound, "no driver"); });
  EXPECT_EQ(status.message(), "no driver");
}

// What a call holds, and what it gives, goes with the thread that it was left to.
TEST(DriverCall, ACallThatDoesNotComeBackIsLeftToItselfWithWhatItHolds) {
  std::atomic<bool> hangs = true;
  const auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watched = held;
  const auto late = [&hangs, held = std::make_shared<std::shared_ptr<int>>(held)] {
    while (hangs) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return Result<std::shared_ptr<int>>(std::move(*held));
  };
  const auto given = CallWithin(/*longest=*/20'000'000, "a card", late);
  EXPECT_EQ(given.status().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(given.status().message(), "a card: its driver hangs, for 0.0 s so far");
  EXPECT_TRUE(DriverHasHung());
  EXPECT_EQ(DriverCallsOut(), 1);
  const Status next = CallWithin(kAMinute, "a device", [] { return OkStatus(); });
  EXPECT_EQ(next.message(), "a device: a driver that was asked before still hangs");
  hangs = false;
  for (int i = 0; i < 60'000 && watched.use_count() > 1; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(watched.use_count(), 1);
  WaitForDriverCalls();
  EXPECT_TRUE(CallWithin(kAMinute, "a device", [] { return OkStatus(); }).ok());
}

TEST(DriverCall, WhatItThrowsIsThrownWhereItWasAsked) {
  const auto call = [] { return CallWithin(kAMinute, "a card", []() -> Status { throw 7; }); };
  EXPECT_THROW((void)call(), int);
  EXPECT_EQ(DriverCallsOut(), 0);
}

TEST(DriverCall, WithoutAThreadForItItIsNotMade) {
  const NoMoreThreads none;
  const Status status = CallWithin(kAMinute, "a card", [] { return OkStatus(); });
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
}

}  // namespace
}  // namespace troupe
