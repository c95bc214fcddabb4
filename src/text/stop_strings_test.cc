#include "text/stop_strings.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

TEST(StopStrings, TextWithoutThemPassesThrough) {
  StopMatcher matcher({"STOP"});
  EXPECT_EQ(matcher.Push("hello "), "hello ");
  EXPECT_EQ(matcher.Push("world"), "world");
  EXPECT_EQ(matcher.Flush(), "");
  EXPECT_FALSE(matcher.found().has_value());
}

TEST(StopStrings, WhatMayBecomeOneIsHeldBack) {
  StopMatcher matcher({"\n\nUser:"});
  EXPECT_EQ(matcher.Push("yes\n"), "yes");
  EXPECT_EQ(matcher.Push("\nUs"), "");
  EXPECT_EQ(matcher.Push("e it"), "\n\nUse it");
  EXPECT_EQ(matcher.Push("\n\nUser: and"), "");
  EXPECT_EQ(matcher.found(), "\n\nUser:");
  EXPECT_EQ(matcher.Push("more"), "");
  EXPECT_EQ(matcher.Flush(), "");
}

TEST(StopStrings, EndOfTextGivesBackWhatWasHeld) {
  StopMatcher matcher({"STOP"});
  EXPECT_EQ(matcher.Push("a STO"), "a ");
  EXPECT_EQ(matcher.Flush(), "STO");
}

TEST(StopStrings, ABeginningInsideABeginningIsNotForgotten) {
  StopMatcher matcher({"aab"});
  EXPECT_EQ(matcher.Push("aaab!"), "a");
  EXPECT_EQ(matcher.found(), "aab");
}

TEST(StopStrings, TheFirstToBeCompleteCountsAndOfSeveralTheLongest) {
  StopMatcher first({"abcd", "bc"});
  EXPECT_EQ(first.Push("xabcd"), "xa");
  EXPECT_EQ(first.found(), "bc");
  StopMatcher longest({"c", "abc"});
  EXPECT_EQ(longest.Push("xabcd"), "x");
  EXPECT_EQ(longest.found(), "abc");
}

TEST(StopStrings, EmptyOnesAreIgnored) {
  StopMatcher matcher({""});
  EXPECT_EQ(matcher.Push("abc"), "abc");
  EXPECT_FALSE(matcher.found().has_value());
}

TEST(StopStrings, HowTheTextIsCutChangesNothing) {
  Rng rng(TestSeed());
  const auto random_text = [&rng](std::uint64_t max) {
    std::string text;
    for (std::uint64_t left = rng.Below(max + 1); left > 0; --left) text += "ab"[rng.Below(2)];
    return text;
  };
  int found = 0;
  for (int round = 0; round < 5000; ++round) {
    const std::vector<std::string> stops = {random_text(6), random_text(6)};
    const std::string text = random_text(30);
    StopMatcher matcher(stops);
    std::string shown;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t length = 1 + rng.Below(text.size() - at);
      shown += matcher.Push(std::string_view(text).substr(at, length));
      at += length;
    }
    shown += matcher.Flush();
    // The truth: the least end of any occurrence, and there the least beginning.
    std::size_t end = text.size() + 1;
    std::size_t begin = text.size();
    for (const std::string& stop : stops) {
      const std::size_t at = stop.empty() ? std::string::npos : text.find(stop);
      if (at == std::string::npos) continue;
      if (at + stop.size() < end || (at + stop.size() == end && at < begin)) {
        begin = at;
        end = at + stop.size();
      }
    }
    ASSERT_EQ(shown, text.substr(0, begin)) << text << " " << stops[0] << " " << stops[1];
    ASSERT_EQ(matcher.found().has_value(), end <= text.size());
    found += matcher.found().has_value() ? 1 : 0;
  }
  EXPECT_GT(found, 1000);  // or the test has proved little
}

}  // namespace
}  // namespace troupe
