#include "troupe/chat_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using ChatKind = ChatCommand::Kind;

TEST(ChatCommandTest, KnowsItsOwnNamesAndThoseOfOthers) {
  for (const char* const line : {"/exit", "/quit", "/bye", "/exit "}) {
    EXPECT_EQ(ParseChatCommand(line)->kind, ChatKind::kExit) << line;
  }
  EXPECT_EQ(ParseChatCommand("/?")->kind, ChatKind::kHelp);
  EXPECT_EQ(ParseChatCommand("/clear")->kind, ChatKind::kNew);
}

TEST(ChatCommandTest, WhatFollowsIsTheArgumentWithoutBlanksAroundIt) {
  EXPECT_EQ(ParseChatCommand("/save  my talk.json ")->argument, "my talk.json");
  EXPECT_EQ(ParseChatCommand("/system")->argument, "");
}

TEST(ChatCommandTest, MessagesAreNoCommands) {
  for (const char* const line : {"", "hello", " /exit", "/", "//exit", "/etc/hosts is a file", "/2",
                                 "/exit\nand more lines", "/Users"}) {
    EXPECT_FALSE(ParseChatCommand(line)) << line;
  }
}

TEST(ChatCommandTest, AMistypedOneIsToldWhatItMayHaveMeant) {
  const ChatCommand typo = *ParseChatCommand("/exti");
  EXPECT_EQ(typo.kind, ChatKind::kUnknown);
  EXPECT_THAT(typo.argument, testing::HasSubstr("did you mean /exit?"));
  EXPECT_THAT(ParseChatCommand("/regenerate")->argument, testing::HasSubstr("/help"));
}

TEST(ChatCommandTest, ABeginningIsCompletedAsFarAsItIsClear) {
  EXPECT_EQ(RestOfCommand("/he"), "lp");
  EXPECT_EQ(RestOfCommand("/sy"), "stem ");
  EXPECT_EQ(RestOfCommand("/s"), "") << "/save or /system";
  EXPECT_EQ(RestOfCommand("/"), "");
  EXPECT_EQ(RestOfCommand("/help"), "");
  for (const char* const none : {"", "he", "/etc", "/save x"}) {
    EXPECT_EQ(RestOfCommand(none), std::nullopt) << none;
  }
}

TEST(ChatCommandTest, HelpNamesEveryOne) {
  for (const char* const word : {"/new", "/system", "/save", "/load", "/exit", "/help"}) {
    EXPECT_THAT(std::string(ChatHelp()), testing::HasSubstr(word));
  }
}

}  // namespace
}  // namespace troupe
