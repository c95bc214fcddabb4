#include "troupe/completion_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kTextEvent = "data: {\"choices\":[{\"index\":0,\"text\":\"a\"}]}\n\n";
constexpr std::string_view kUsageEvent =
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":5}}\n\n";
constexpr std::string_view kLastEvent = "data: [DONE]\n\n";

TEST(EventsOfACompletion, TellWhenTextCameAndHowManyTokens) {
  CompletionEvents events;
  events.Take(": a comment\n\ndata: {\"choices\":[{\"text\":\"\"}]}\n\n", 1);
  events.Take(kTextEvent, 2);
  events.Take(kTextEvent, 3);
  EXPECT_EQ(events.tokens(), 2u) << "the server has not said yet";
  events.Take(kUsageEvent, 4);
  events.Take(kLastEvent, 5);
  EXPECT_THAT(events.text_times(), ElementsAre(2, 3));
  EXPECT_EQ(events.prompt_tokens(), 7u);
  EXPECT_EQ(events.tokens(), 5u);
  EXPECT_TRUE(events.End().ok());
}

TEST(EventsOfACompletion, AreTheSameWhereverTheyAreCut) {
  std::string all = std::string(kTextEvent) + std::string(kTextEvent) + std::string(kUsageEvent);
  all += "data: [DONE]\r\n\r\n";
  for (std::size_t cut = 0; cut <= all.size(); ++cut) {
    CompletionEvents events;
    events.Take(std::string_view(all).substr(0, cut), 1);
    events.Take(std::string_view(all).substr(cut), 2);
    EXPECT_EQ(events.text_times().size(), 2u) << cut;
    EXPECT_EQ(events.tokens(), 5u) << cut;
    EXPECT_TRUE(events.End().ok()) << cut;
  }
}

TEST(EventsOfACompletion, ThatEndWithoutTheLastAreAnError) {
  CompletionEvents events;
  events.Take(kTextEvent, 1);
  EXPECT_EQ(events.End().code(), Code::kDataLoss);
}

TEST(EventsOfACompletion, MayTellOfAnError) {
  CompletionEvents events;
  events.Take(kTextEvent, 1);
  events.Take("data: {\"error\":{\"message\":\"an expert cannot be read\"}}\n\n", 2);
  events.Take(kLastEvent, 3);
  EXPECT_EQ(events.End().code(), Code::kInternal);
  EXPECT_EQ(events.End().message(), "an expert cannot be read");
}

TEST(EventsOfACompletion, ThatAreNoneAreAnErrorAndNotKept) {
  CompletionEvents events;
  events.Take("data: {\"choices\":\n\n", 1);
  EXPECT_EQ(events.End().code(), Code::kDataLoss);
  CompletionEvents endless;
  for (int i = 0; i < 3; ++i) endless.Take(std::string(600'000, 'x'), 1);
  EXPECT_THAT(endless.End().message(), HasSubstr("1048576 bytes"));
}

}  // namespace
}  // namespace troupe
