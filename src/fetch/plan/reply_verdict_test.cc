#include "fetch/plan/reply_verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;
using Next = ReplyVerdict::Next;

const AskedFor kFirstTime = {.what = "m", .bytes = 100};
const AskedFor kGoingOn = {.what = "m", .bytes = 100, .from = 40};

ReplyVerdict Part(std::string range) {
  return JudgeReply({.status = 206, .range = std::move(range)}, kGoingOn);
}

TEST(ContentRange, IsReadWithOrWithoutATotal) {
  EXPECT_EQ(ParseContentRange("bytes 5-9/10"), (RangeReply{5, 9, 10}));
  EXPECT_EQ(ParseContentRange("bytes 5-9/*"), (RangeReply{5, 9, std::nullopt}));
  for (const char* text :
       {"", "bytes", "bytes 5-9", "bytes 9-5/10", "bytes 5-10/10", "bytes */10", "items 5-9/10",
        "bytes 5-9/10x", "bytes -9/10", "bytes 99999999999999999999-9/10"}) {
    EXPECT_EQ(ParseContentRange(text), std::nullopt) << text;
  }
}

TEST(ReplyVerdict, AWholeFileIsTakenFromItsStart) {
  EXPECT_EQ(JudgeReply({.status = 200, .length = 100}, kFirstTime).next, Next::kFromStart);
  EXPECT_EQ(JudgeReply({.status = 200}, kFirstTime).next, Next::kFromStart);
  // The server knows no ranges, or the file has changed since the first part was got.
  EXPECT_EQ(JudgeReply({.status = 200, .length = 100}, kGoingOn).next, Next::kFromStart);
}

TEST(ReplyVerdict, ARangeIsTakenIfItIsTheOneThatWasAskedFor) {
  EXPECT_EQ(Part("bytes 40-99/100").next, Next::kAppend);
  EXPECT_EQ(Part("bytes 40-49/100").next, Next::kAppend);
  EXPECT_EQ(Part("bytes 40-99/*").next, Next::kAppend);
  for (const char* other : {"", "bytes 39-99/100", "bytes 0-99/100", "bytes 40-99/101",
                            "bytes 40-100/*", "bytes 40-199/200"}) {
    EXPECT_EQ(Part(other).next, Next::kGiveUp) << other;
    EXPECT_EQ(Part(other).why.code(), Code::kDataLoss) << other;
  }
}

TEST(ReplyVerdict, AFileOfAnotherSizeThanListedIsRefused) {
  const ReplyVerdict verdict = JudgeReply({.status = 200, .length = 101}, kFirstTime);
  EXPECT_EQ(verdict.next, Next::kGiveUp);
  EXPECT_EQ(verdict.why.message(), "m: listed with 100 bytes, and the server sends 101");
}

TEST(ReplyVerdict, ARangeThatIsRefusedIsAskedForAsAWhole) {
  EXPECT_EQ(JudgeReply({.status = 416}, kGoingOn).next, Next::kAskWhole);
  EXPECT_EQ(JudgeReply({.status = 416}, kFirstTime).next, Next::kGiveUp);
}

TEST(ReplyVerdict, ARedirectIsFollowedIfItLeadsSomewhere) {
  EXPECT_EQ(JudgeReply({.status = 302, .location = "https://b"}, kFirstTime).next, Next::kFollow);
  EXPECT_EQ(JudgeReply({.status = 302}, kFirstTime).next, Next::kGiveUp);
}

TEST(ReplyVerdict, ABusyServerIsAskedAgain) {
  for (const int status : {429, 500, 502, 503, 504}) {
    const ReplyVerdict verdict = JudgeReply({.status = status, .retry_after = 7.0}, kFirstTime);
    EXPECT_EQ(verdict.next, Next::kComeAgain) << status;
    EXPECT_EQ(verdict.why.retry_after(), 7.0);
  }
}

TEST(ReplyVerdict, ARefusalSaysWhatWouldHelp) {
  const auto said = [](int status, bool token) {
    return JudgeListing({.status = status}, "m", token).why.message();
  };
  EXPECT_THAT(said(401, false), HasSubstr("needs a token (HF_TOKEN)"));
  EXPECT_THAT(said(401, true), HasSubstr("the token in HF_TOKEN is not accepted"));
  EXPECT_THAT(said(403, true), HasSubstr("accept its terms"));
  EXPECT_THAT(said(404, true), HasSubstr("no such model or file"));
  EXPECT_THAT(said(418, true), HasSubstr("status 418"));
  EXPECT_EQ(JudgeListing({.status = 200}, "m", true).next, Next::kFromStart);
}

TEST(Etag, ProvesBytesIfItIsStrong) {
  EXPECT_TRUE(IsStrongEtag("\"abc\""));
  for (const char* etag : {"", "\"\"", "W/\"abc\"", "abc"})
    EXPECT_FALSE(IsStrongEtag(etag)) << etag;
}

TEST(Patience, EndsAfterFailuresWithoutProgress) {
  Patience patience(3);
  EXPECT_THAT(patience.AfterFailure(), Optional(0.5));
  EXPECT_THAT(patience.AfterFailure(), Optional(1.0));
  EXPECT_EQ(patience.next_try(), 3);
  patience.Progressed();
  EXPECT_THAT(patience.AfterFailure(), Optional(0.5));
  EXPECT_THAT(patience.AfterFailure(5), Optional(5.0));
  EXPECT_EQ(patience.AfterFailure(), std::nullopt);
}

TEST(Patience, DoesNotWaitForHours) { EXPECT_EQ(Patience(5).AfterFailure(3600), std::nullopt); }

}  // namespace
}  // namespace troupe
