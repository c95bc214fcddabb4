#include "server/http/http_exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace troupe {
namespace {

using testing::HasSubstr;
using testing::Not;

class HttpExchangeTest : public testing::Test {
 protected:
  void Open(ExchangeFacts facts = {}) {
    facts.unread = std::make_shared<UnreadPool>(1 << 20);
    exchange_ = std::make_shared<HttpExchange>(facts, [this] { ++wakes_; });
  }
  void SetUp() override { Open(); }

  std::string Sent() {
    std::string all;
    for (std::string bytes; !(bytes = exchange_->outbox().Take()).empty();) {
      exchange_->outbox().Sent(bytes.size());
      all += bytes;
    }
    return all;
  }

  int wakes_ = 0;
  std::shared_ptr<HttpExchange> exchange_;
};

TEST_F(HttpExchangeTest, AWholeResponseSaysItsLength) {
  exchange_->Send({.body = "{}"});
  EXPECT_EQ(Sent(),
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: keep-alive\r\n"
            "Content-Length: 2\r\n\r\n{}");
  EXPECT_TRUE(exchange_->ended());
  EXPECT_GT(wakes_, 0);
}

TEST_F(HttpExchangeTest, AStreamComesInChunks) {
  exchange_->Begin({.content_type = "text/event-stream"});
  EXPECT_TRUE(exchange_->Write("0123456789abcdef"));
  EXPECT_TRUE(exchange_->Write(""));  // a chunk of no bytes would be the end
  EXPECT_FALSE(exchange_->ended());
  exchange_->End();
  const std::string sent = Sent();
  EXPECT_THAT(sent, HasSubstr("Transfer-Encoding: chunked\r\n"));
  EXPECT_THAT(sent, testing::EndsWith("\r\n\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n"));
  EXPECT_TRUE(exchange_->ended());
}

// The handler's thread ends the stream while the connection's asks for what to send next.
TEST_F(HttpExchangeTest, NothingOfAStreamIsLeftWhenItIsOver) {
  for (int i = 0; i < 3000; ++i) {
    auto exchange = std::make_shared<HttpExchange>(
        ExchangeFacts{.unread = std::make_shared<UnreadPool>(1 << 20)}, [] {});
    exchange->Begin({.content_type = "text/event-stream"});
    std::thread handler([exchange] {
      exchange->Write("abc");
      exchange->End();
    });
    std::string sent;
    for (HttpExchange::ToSend next; !(next = exchange->Next()).over;) {
      exchange->outbox().Sent(next.bytes.size());
      sent += next.bytes;
    }
    handler.join();
    ASSERT_THAT(sent, testing::EndsWith("3\r\nabc\r\n0\r\n\r\n")) << "in try " << i;
  }
}

TEST_F(HttpExchangeTest, OlderClientsGetAStreamThatEndsWithTheConnection) {
  Open({.chunks = false});
  exchange_->Begin({.content_type = "text/plain"});
  exchange_->Write("abc");
  exchange_->End();
  EXPECT_THAT(Sent(), testing::EndsWith("\r\n\r\nabc"));
  EXPECT_FALSE(exchange_->keep_alive());
}

TEST_F(HttpExchangeTest, AQuestionForTheHeadGetsNoBody) {
  Open({.head = true});
  exchange_->Send({.body = "{}"});
  const std::string sent = Sent();
  EXPECT_THAT(sent, HasSubstr("Content-Length: 2\r\n"));
  EXPECT_THAT(sent, testing::EndsWith("\r\n\r\n"));
}

TEST_F(HttpExchangeTest, WhatHasNotChangedHasNoBodyAndSaysNoLength) {
  exchange_->Send({.status = 304, .content_type = "text/html"});
  EXPECT_EQ(
      Sent(),
      "HTTP/1.1 304 Not Modified\r\nContent-Type: text/html\r\nConnection: keep-alive\r\n\r\n");
}

TEST_F(HttpExchangeTest, LogsAreToldTheIdAndWhatWasNoted) {
  const HttpReplyPtr reply = MakeReply(exchange_);
  reply->Note({.model = "m", .prompt_tokens = 3, .answer_tokens = 4});
  reply->Send({.headers = {{"x-request-id", "req_1"}}, .body = "{}"});
  HttpEnded ended;
  exchange_->Tell(ended);
  EXPECT_EQ(ended.id, "req_1");
  EXPECT_EQ(ended.use.model, "m");
  EXPECT_EQ(ended.use.answer_tokens, 4u);
}

TEST_F(HttpExchangeTest, AReplyThatIsLetGoOfWithoutAnAnswerIsAnError) {
  MakeReply(exchange_).reset();
  ASSERT_TRUE(exchange_->abandoned());
  exchange_->SendInstead({.status = 500});
  EXPECT_FALSE(exchange_->abandoned());
  EXPECT_THAT(Sent(), HasSubstr("500 Internal Server Error"));
}

TEST_F(HttpExchangeTest, AStreamThatIsLetGoOfEnds) {
  HttpReplyPtr reply = MakeReply(exchange_);
  reply->Begin({});
  reply->Write("a");
  reply.reset();
  EXPECT_THAT(Sent(), testing::EndsWith("1\r\na\r\n0\r\n\r\n"));
}

TEST_F(HttpExchangeTest, AClientWhoReadsTooSlowlyIsLetGo) {
  Open({.most_unread = 1000});
  exchange_->Begin({});
  while (exchange_->Write(std::string(100, 'x'))) {
  }
  EXPECT_TRUE(exchange_->overflowed());
}

TEST_F(HttpExchangeTest, AResponseThatFindsNoRoomIsTurnedAwayAndAShortOneSentInItsPlace) {
  MakeReply(exchange_)->Send({.body = std::string(2 << 20, 'x')});  // and is let go of
  EXPECT_TRUE(exchange_->turned_away());
  EXPECT_FALSE(exchange_->overflowed() || exchange_->Next().over);
  EXPECT_EQ(wakes_, 1);
  exchange_->SendInstead({.status = 503, .body = "busy"});
  EXPECT_EQ(exchange_->status(), 503);
  EXPECT_THAT(Sent(),
              testing::AllOf(testing::StartsWith("HTTP/1.1 503 "), testing::EndsWith("busy")));
  EXPECT_TRUE(exchange_->Next().over);
}

TEST_F(HttpExchangeTest, WhoLeavesIsToldOfOnceAndNotAfterTheEnd) {
  int gone = 0;
  const HttpReplyPtr reply = MakeReply(exchange_);
  reply->WhenGone([&] { ++gone; });
  reply->Begin({});
  exchange_->outbox().Close();
  EXPECT_EQ(gone, 1);
  EXPECT_FALSE(reply->Write("a"));
  reply->End();

  Open();
  const HttpReplyPtr ended = MakeReply(exchange_);
  ended->WhenGone([&] { ++gone; });
  ended->Send({});
  exchange_->outbox().Close();
  EXPECT_EQ(gone, 1);
}

TEST_F(HttpExchangeTest, AServerThatIsBeingDrainedSaysThatItCloses) {
  exchange_->CloseAfter();
  exchange_->Send({});
  EXPECT_THAT(Sent(), HasSubstr("Connection: close\r\n"));
}

}  // namespace
}  // namespace troupe
