#include "server/pulse.h"

#include <gtest/gtest.h>

#include <atomic>

namespace troupe {
namespace {

TEST(Pulse, WhoWantsToBeToldAgainIs) {
  std::atomic<int> told = 0, once = 0;
  Pulse pulse(std::chrono::milliseconds(1));
  pulse.Add([&] { return ++told < 20; });
  pulse.Add([&] {
    ++once;
    return false;
  });
  while (told < 20) std::this_thread::yield();
  EXPECT_EQ(once, 1);
}

TEST(Pulse, ListenersMayBeAddedByListeners) {
  std::atomic<int> told = 0;
  Pulse pulse(std::chrono::milliseconds(1));
  pulse.Add([&] {
    pulse.Add([&] { return ++told < 3; });
    return false;
  });
  while (told < 3) std::this_thread::yield();
}

TEST(Pulse, EndsWhileItWaits) {
  Pulse pulse(std::chrono::hours(1));
  pulse.Add([] { return true; });
}

}  // namespace
}  // namespace troupe
