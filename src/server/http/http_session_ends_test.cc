// Clients that send nothing more, and answers that do not come to their end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "server/http/http_session_for_test.h"

namespace troupe {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

TEST_F(HttpSessionTest, AClientThatSendsNothingMoreGetsItsAnswerAsLongAsItMayRead) {
  wire_->Come(Get("/"));
  int asked = 0;
  replies_[0]->WhenDoubted([&] {
    if (++asked == 1) replies_[0]->Begin({});
    return replies_[0]->Write(" ");
  });
  wire_->EndSending();
  RunPosted();
  EXPECT_EQ(asked, 1);
  while (wire_->writes()) wire_->Send();
  wire_->RunOut(kRead);
  EXPECT_FALSE(wire_->closed);
  replies_[0]->Write("answer");
  replies_[0]->End();
  RunPosted();
  std::string sent;
  while (wire_->writes()) sent += wire_->Send();
  EXPECT_THAT(sent, HasSubstr("answer"));
  EXPECT_TRUE(wire_->lingers);
  EXPECT_EQ(log_.at(0).how, HttpEnded::How::kAnswered);
}

TEST_F(HttpSessionTest, OneThatSendsNothingMoreAndResetsWhatIsWrittenHasLeft) {
  wire_->Come(Get("/"));
  bool gone = false;
  replies_[0]->WhenGone([&] { gone = true; });
  replies_[0]->WhenDoubted([&] {
    replies_[0]->Begin({});
    return true;
  });
  wire_->EndSending();
  RunPosted();
  EXPECT_FALSE(gone);
  wire_->may_read = false;
  wire_->RunOut(kRead);
  EXPECT_TRUE(gone);
  EXPECT_TRUE(wire_->closed);
}

TEST_F(HttpSessionTest, OneThatSendsNothingMoreIsSpokenToAgainAsTunnelsTakeTheFirstWord) {
  wire_->Come(Get("/"));
  int asked = 0;
  bool gone = false;
  replies_[0]->WhenGone([&] { gone = true; });
  replies_[0]->WhenDoubted([&] {
    if (++asked == 1) replies_[0]->Begin({});
    return replies_[0]->Write(" ");
  });
  const auto look = [&] {
    while (wire_->writes()) wire_->Send();
    wire_->RunOut(kRead);
    RunPosted();
  };
  wire_->EndSending();
  RunPosted();
  wire_->RunOut(kRead);
  RunPosted();
  EXPECT_EQ(asked, 1);  // the first word is still on its way
  look();
  EXPECT_EQ(asked, 2);
  for (int i = 0; i < 100; ++i) look();
  EXPECT_GT(asked, 20);
  EXPECT_LT(asked, 40);  // one that stays hears less after a while
  EXPECT_FALSE(gone);
  wire_->may_read = false;
  look();
  EXPECT_TRUE(gone);
}

TEST_F(HttpSessionTest, OneThatSendsNothingMoreIsWaitedForWhereNothingCanBeSaidYet) {
  for (const bool answered : {true, false}) {
    SCOPED_TRACE(answered);
    TearDown();
    wire_ = std::make_shared<FakeWire>();
    SetUp();
    wire_->Come(Get("/"));
    wire_->EndSending();
    RunPosted();
    EXPECT_FALSE(wire_->closed);
    if (answered) replies_.back()->Send({.body = "in time"});
    RunPosted();
    if (answered) {
      EXPECT_THAT(wire_->Send(), EndsWith("in time"));
      EXPECT_TRUE(wire_->lingers);
    } else {
      wire_->RunOut(kRead);
      RunPosted();
      EXPECT_TRUE(wire_->closed);
    }
  }
}

TEST_F(HttpSessionTest, AStreamWithNothingToSayEndsWithItsClientsSending) {
  wire_->Come(Get("/"));
  replies_[0]->Begin({});
  RunPosted();
  wire_->Send();
  wire_->EndSending();
  RunPosted();
  wire_->RunOut(kRead);
  RunPosted();
  EXPECT_TRUE(wire_->closed);
}

// Until then who parks requests is asked, and says that it parks none.
TEST_F(HttpSessionTest, WhoAnswersMayComeToBeAskedJustAfterTheClientHasEndedItsSending) {
  wire_->Come(Get("/"));
  replies_[0]->WhenDoubted([] { return false; });
  wire_->EndSending();
  RunPosted();
  EXPECT_FALSE(wire_->closed);
  replies_[0]->WhenDoubted([&] { return replies_[0]->Write(" "); });
  replies_[0]->Begin({});
  while (wire_->writes()) wire_->Send();
  wire_->RunOut(kRead);
  RunPosted();
  EXPECT_FALSE(wire_->closed);
  replies_[0]->End();
  RunPosted();
  while (wire_->writes()) wire_->Send();
  EXPECT_TRUE(wire_->lingers);
}

TEST_F(HttpSessionTest, ARequestThatIsLetGoOfIsAnErrorInItsApisShape) {
  wire_->Come(Get("/"));
  replies_.clear();
  RunPosted();
  EXPECT_THAT(wire_->Send(), AllOf(StartsWith("HTTP/1.1 500 "), EndsWith("without an answer")));
}

TEST_F(HttpSessionTest, AResponseThatIsBrokenEndsTheConnectionWithoutItsLastChunk) {
  wire_->Come(Get("/"));
  replies_[0]->Begin({});
  replies_[0]->Write("half");
  EXPECT_TRUE(replies_[0]->MayBreak());
  replies_[0]->Break(504);
  RunPosted();
  std::string sent;
  while (wire_->writes()) sent += wire_->Send();
  EXPECT_THAT(sent, EndsWith("4\r\nhalf\r\n"));
  EXPECT_TRUE(wire_->lingers);
  EXPECT_EQ(cut_off_, 1);
  EXPECT_EQ(log_.at(0).how, HttpEnded::How::kCutOff);
  EXPECT_EQ(log_.at(0).status, 504);
}

TEST_F(HttpSessionTest, AResponseWithoutChunksCannotBeBroken) {
  wire_->Come("GET / HTTP/1.0\r\nHost: a\r\n\r\n");
  EXPECT_FALSE(replies_.at(0)->MayBreak());
}

}  // namespace
}  // namespace troupe
