#include "troupe/message_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::Optional;

std::optional<std::string> AddAll(MessageLines& lines, std::initializer_list<const char*> all) {
  std::optional<std::string> message;
  for (const char* const line : all) {
    EXPECT_FALSE(message) << "a message before its last line";
    message = lines.Add(line);
  }
  return message;
}

TEST(MessageLinesTest, ALineIsAMessage) {
  MessageLines lines(100);
  EXPECT_THAT(lines.Add("hello"), Optional(std::string("hello")));
  EXPECT_THAT(lines.Add(""), Optional(std::string()));
  EXPECT_FALSE(lines.open());
}

TEST(MessageLinesTest, ABackslashAtTheEndGoesOn) {
  MessageLines lines(100);
  EXPECT_THAT(AddAll(lines, {"one\\", "two \\", "three"}),
              Optional(std::string("one\ntwo \nthree")));
}

TEST(MessageLinesTest, QuotesHoldAnyNumberOfLines) {
  MessageLines lines(100);
  EXPECT_THAT(AddAll(lines, {"\"\"\"", "one\\", "", "two", "\"\"\""}),
              Optional(std::string("one\\\n\ntwo")));
  EXPECT_THAT(AddAll(lines, {"\"\"\"one", "two\"\"\""}), Optional(std::string("one\ntwo")));
  EXPECT_THAT(lines.Add("\"\"\"one\"\"\""), Optional(std::string("one")));
}

TEST(MessageLinesTest, WhatIsTooLongIsCutAndToldUntilTheNextMessage) {
  MessageLines lines(5);
  EXPECT_THAT(AddAll(lines, {"abc\\", "defg"}), Optional(std::string("abc\nd")));
  EXPECT_TRUE(lines.too_long());
  EXPECT_THAT(lines.Add("abcde"), Optional(std::string("abcde")));
  EXPECT_FALSE(lines.too_long());
}

TEST(MessageLinesTest, WhatHasBegunCanBeForgottenOrTakenAsItIs) {
  MessageLines lines(100);
  AddAll(lines, {"one\\"});
  EXPECT_TRUE(lines.open());
  lines.Clear();
  EXPECT_THAT(lines.Add("two"), Optional(std::string("two")));
  AddAll(lines, {"\"\"\"", "three"});
  EXPECT_EQ(lines.Take(), "three\n");
  EXPECT_FALSE(lines.open());
}

}  // namespace
}  // namespace troupe
