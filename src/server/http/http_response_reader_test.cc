#include "server/http/http_response_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace troupe {
namespace {

using testing::HasSubstr;

class HttpResponseReading : public testing::Test {
 protected:
  // What reading it ends with, `at_once` bytes at a time; whether more is expected, without an end.
  Status Feed(std::string_view bytes, std::size_t at_once) {
    body_.clear();
    heads_ = 0;
    reader_ = std::make_unique<HttpResponseReader>(
        [this](const HttpResponse& head) {
          head_ = head;
          ++heads_;
        },
        [this](std::string_view piece) { body_ += piece; });
    while (!bytes.empty() && !reader_->done()) {
      const std::span<char> room = reader_->Room();
      const std::size_t count = std::min({bytes.size(), room.size(), at_once});
      bytes.copy(room.data(), count);
      TROUPE_RETURN_IF_ERROR(reader_->Take(count));
      bytes.remove_prefix(count);
    }
    return OkStatus();
  }

  std::unique_ptr<HttpResponseReader> reader_;
  HttpResponse head_;
  std::string body_;
  int heads_ = 0;
};

TEST_F(HttpResponseReading, AResponseIsTheSameInAnyPieces) {
  const std::string_view with_length =
      "HTTP/1.1 201 Created\r\nContent-Type: text/plain\r\nX-Key: k\r\nContent-Length: 5\r\n\r\n"
      "hello";
  const std::string_view in_chunks =
      "HTTP/1.1 201 Created\r\ncontent-type: text/plain\r\nx-key: k\r\n"
      "Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;note=1\r\nllo\r\n0\r\n\r\n";
  for (const std::string_view response : {with_length, in_chunks}) {
    for (std::size_t at_once = 1; at_once <= response.size(); ++at_once) {
      ASSERT_TRUE(Feed(response, at_once).ok()) << at_once;
      ASSERT_TRUE(reader_->done());
      ASSERT_EQ(body_, "hello");
      ASSERT_EQ(heads_, 1);
      ASSERT_EQ(head_.status, 201);
      ASSERT_EQ(head_.content_type, "text/plain");
      ASSERT_EQ(HeaderOf(head_.headers, "x-key"), "k");
      ASSERT_TRUE(reader_->keeps_alive());
    }
  }
}

TEST_F(HttpResponseReading, ABodyWhoseLengthNobodySaidEndsWithTheConnection) {
  ASSERT_TRUE(Feed("HTTP/1.1 200 OK\r\n\r\nhello", 7).ok());
  EXPECT_FALSE(reader_->done());
  EXPECT_TRUE(reader_->OnEnd().ok());
  EXPECT_EQ(body_, "hello");
}

TEST_F(HttpResponseReading, TellsWhetherAnotherRequestMayFollow) {
  for (const std::string_view head :
       {"HTTP/1.1 200 OK\r\nConnection: close\r\n", "HTTP/1.0 200 OK\r\n"}) {
    ASSERT_TRUE(Feed(std::string(head) + "Content-Length: 0\r\n\r\n", 1000).ok());
    EXPECT_FALSE(reader_->keeps_alive()) << head;
  }
}

TEST_F(HttpResponseReading, WhatIsCutOffIsAnError) {
  const std::string_view response = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
  for (std::size_t length = 0; length < response.size(); ++length) {
    ASSERT_TRUE(Feed(response.substr(0, length), response.size()).ok());
    ASSERT_THAT(reader_->OnEnd().message(), HasSubstr("before the answer was complete")) << length;
  }
}

TEST_F(HttpResponseReading, WhatIsNoHttpIsAnError) {
  EXPECT_THAT(Feed("SSH-2.0-OpenSSH_9.2\r\n", 100).message(), HasSubstr("not an answer of HTTP"));
  EXPECT_EQ(Feed("HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", 100).code(), Code::kDataLoss);
  EXPECT_EQ(Feed(std::string("HTTP/1.1 200 OK\r\nX: ") + std::string(1 << 20, 'x'), 4096).code(),
            Code::kDataLoss);
}

TEST_F(HttpResponseReading, WhatOnlySaysThatAResponseWillComeIsNotOne) {
  const std::string_view response =
      "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n"
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 7\r\n\r\n";
  for (std::size_t at_once = 1; at_once <= response.size(); ++at_once) {
    ASSERT_TRUE(Feed(response, at_once).ok()) << at_once;
    ASSERT_TRUE(reader_->done()) << at_once;
    ASSERT_EQ(body_, "hello");
    ASSERT_EQ(heads_, 1);
    ASSERT_EQ(head_.status, 200);
  }
}

TEST_F(HttpResponseReading, AResponseWithoutABodyEndsWithItsHead) {
  ASSERT_TRUE(Feed("HTTP/1.1 204 No Content\r\n\r\n", 100).ok());
  EXPECT_TRUE(reader_->done());
  EXPECT_EQ(head_.status, 204);
}

}  // namespace
}  // namespace troupe
