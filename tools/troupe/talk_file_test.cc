#include "troupe/talk_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::HasSubstr;

TEST(TalkFileTest, WhatIsSavedIsReadAgain) {
  const std::vector<Message> talk = {
      {.role = "system", .content = "Be brief."},
      {.role = "user", .content = "Two lines:\nand \"quotes\" \xE2\x82\xAC"},
      {.role = "assistant", .content = "Yes.", .more = R"({"reasoning_content":"Hm."})"}};
  EXPECT_EQ(ParseTalk("t", TalkRecord(talk).Dump(2)).value(), talk);
}

TEST(TalkFileTest, WhatIsNoTalkIsAnErrorThatNamesThePlace) {
  EXPECT_THAT(ParseTalk("t.json", "{}").status().message(), HasSubstr("t.json"));
  EXPECT_THAT(ParseTalk("t.json", R"({"messages": []})").status().message(), HasSubstr("messages"));
  EXPECT_THAT(
      ParseTalk("t.json", R"({"messages": [{"role": "king", "content": "x"}]})").status().message(),
      HasSubstr("messages[0].role"));
  EXPECT_FALSE(ParseTalk("t.json", "no JSON").ok());
}

}  // namespace
}  // namespace troupe
