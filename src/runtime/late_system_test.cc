#include "runtime/late_system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::ElementsAre;

TEST(LateSystem, WhatComesFirstIsOneMessageAndWhatComesLaterEndsTheOneBefore) {
  EXPECT_THAT(FoldLateSystem({{"system", "a"},
                              {"system", "b"},
                              {"user", "c"},
                              {"assistant", "", R"({"tool_calls":[1]})"},
                              {"tool", "d", R"({"tool_call_id":"1"})"},
                              {"system", "e"},
                              {"system", "f"}}),
              ElementsAre(Message{"system", "a\n\nb"}, Message{"user", "c"},
                          Message{"assistant", "", R"({"tool_calls":[1]})"},
                          Message{"tool", "d\n\ne\n\nf", R"({"tool_call_id":"1"})"}));
}

TEST(LateSystem, AfterAnAnswerItBeginsWhatFollowsOrIsTheUsers) {
  EXPECT_THAT(
      FoldLateSystem({{"user", "a"}, {"assistant", "b"}, {"system", "c"}, {"user", "d"}}),
      ElementsAre(Message{"user", "a"}, Message{"assistant", "b"}, Message{"user", "c\n\nd"}));
  EXPECT_THAT(
      FoldLateSystem({{"user", "a"}, {"assistant", "b"}, {"system", "c"}, {"assistant", "d"}}),
      ElementsAre(Message{"user", "a"}, Message{"assistant", "b"}, Message{"user", "c"},
                  Message{"assistant", "d"}));
  EXPECT_THAT(FoldLateSystem({{"user", "a"}, {"assistant", "b"}, {"system", "c"}}),
              ElementsAre(Message{"user", "a"}, Message{"assistant", "b"}, Message{"user", "c"}));
}

TEST(LateSystem, ATalkWithoutIsAsItWas) {
  const std::vector<Message> talk = {{"system", "a"}, {"user", "b"}, {"assistant", "c"}};
  EXPECT_EQ(FoldLateSystem(talk), talk);
}

}  // namespace
}  // namespace troupe
