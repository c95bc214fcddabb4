#include "troupe/talk_window.h"

#include <gtest/gtest.h>

#include <string>

namespace troupe {
namespace {

std::vector<Message> Talk(std::string_view roles) {
  std::vector<Message> talk;
  for (const char role : roles) {
    talk.push_back({.role = role == 's'   ? "system"
                            : role == 'u' ? "user"
                                          : "assistant",
                    .content = std::to_string(talk.size())});
  }
  return talk;
}

std::string Left(std::string_view roles, std::size_t dropped) {
  std::vector<Message> talk = Talk(roles);
  EXPECT_EQ(DropOldestTurn(talk), dropped);
  std::string contents;
  for (const Message& message : talk) contents += message.content;
  return contents;
}

TEST(TalkWindow, TheOldestTurnGoesAndTheSystemsMessageStays) {
  EXPECT_EQ(Left("suauau", 2), "0345");
  EXPECT_EQ(Left("uau", 2), "2");
}

TEST(TalkWindow, AMessageWithoutAnAnswerIsATurn) { EXPECT_EQ(Left("uuau", 1), "123"); }

TEST(TalkWindow, TheLastMessageStays) {
  EXPECT_EQ(Left("su", 0), "01");
  EXPECT_EQ(Left("u", 0), "0");
  EXPECT_EQ(Left("s", 0), "0");
  EXPECT_EQ(Left("", 0), "");
}

}  // namespace
}  // namespace troupe
