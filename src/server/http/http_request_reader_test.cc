#include "server/http/http_request_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace troupe {
namespace {

using Event = HttpRequestReader::Event;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

constexpr std::size_t kHeaderBytes = 1000;

class HttpRequestReaderTest : public testing::Test {
 protected:
  void Open(std::size_t memory, std::size_t body_limit = 1 << 20) {
    memory_ = std::make_shared<ByteBudget>(memory);
    reader_ = std::make_unique<HttpRequestReader>(kHeaderBytes, memory_);
    body_limit_ = body_limit;
  }
  void SetUp() override { Open(1 << 20); }

  // The events up to the one that needs more than these bytes, or ends the request.
  std::vector<Event> Feed(std::string_view bytes, std::size_t at_once = 1 << 20) {
    std::vector<Event> events = Read();
    while (!bytes.empty() && events.back() == Event::kMore) {
      const std::span<char> room = reader_->Room();
      const std::size_t count = std::min({bytes.size(), room.size(), at_once});
      if (count == 0) return events;
      bytes.copy(room.data(), count);
      reader_->Take(count);
      bytes.remove_prefix(count);
      events.pop_back();
      for (const Event event : Read()) events.push_back(event);
    }
    return events;
  }
  std::vector<Event> Read() {
    std::vector<Event> events;
    for (;;) {
      events.push_back(reader_->Next());
      if (events.back() == Event::kBegun) reader_->set_body_limit(body_limit_);
      if (events.back() != Event::kBegun && events.back() != Event::kHead) return events;
    }
  }

  std::shared_ptr<ByteBudget> memory_;
  std::unique_ptr<HttpRequestReader> reader_;
  std::size_t body_limit_ = 0;
};

constexpr std::string_view kPost =
    "POST /a%20b?c=d HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello";

TEST_F(HttpRequestReaderTest, TellsTheSameEventsHoweverTheBytesAreCut) {
  for (const std::size_t at_once : {1, 2, 7, 1000}) {
    SCOPED_TRACE(at_once);
    Open(1 << 20);
    EXPECT_THAT(Feed(kPost, at_once), ElementsAre(Event::kBegun, Event::kHead, Event::kDone));
    EXPECT_TRUE(reader_->begun() && reader_->has_head() && reader_->done());
    EXPECT_TRUE(reader_->takes_chunks() && reader_->keeps_alive());
    const HttpRequest request = reader_->TakeRequest();
    EXPECT_EQ(request.method, "POST");
    EXPECT_EQ(request.path, "/a b");
    EXPECT_THAT(request.headers, ElementsAre(Pair("Host", "x"), Pair("Content-Length", "5")));
    EXPECT_EQ(request.body, "hello");
  }
}

TEST_F(HttpRequestReaderTest, ATargetMayNameItsHostWhichThenCounts) {
  for (const auto& [target, path] : {std::pair("http://b:80/a%20b?c=d", "/a b"),
                                     {"HTTPS://b:80", "/"},
                                     {"http://b:80?c=d", "/"}}) {
    SCOPED_TRACE(target);
    Open(1 << 20);
    Feed("GET " + std::string(target) + " HTTP/1.1\r\nHost: x\r\nA: c\r\n\r\n");
    EXPECT_EQ(reader_->head().path, path);
    EXPECT_THAT(reader_->head().headers, ElementsAre(Pair("A", "c"), Pair("Host", "b:80")));
  }
}

TEST_F(HttpRequestReaderTest, BytesBehindARequestAreTheNextOne) {
  Feed(std::string(kPost) + "\r\n\r\nGET / HTTP/1.0\r\n\r\nrest");
  reader_->Reset();
  EXPECT_FALSE(reader_->begun());
  EXPECT_THAT(Read(), ElementsAre(Event::kBegun, Event::kHead, Event::kDone));
  EXPECT_EQ(reader_->head().method, "GET");
  EXPECT_FALSE(reader_->takes_chunks() || reader_->keeps_alive());
}

TEST_F(HttpRequestReaderTest, BlankLinesAloneBeginNoRequest) {
  EXPECT_THAT(Feed("\r\n\r\n"), ElementsAre(Event::kMore));
  EXPECT_FALSE(reader_->begun());
}

TEST_F(HttpRequestReaderTest, WhoWaitsToBeAskedForTheBodyIsKnownAtTheHead) {
  Feed("POST / HTTP/1.1\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_TRUE(reader_->awaits_continue());
  EXPECT_THAT(Feed("ab"), ElementsAre(Event::kDone));
  EXPECT_FALSE(reader_->awaits_continue());
}

TEST_F(HttpRequestReaderTest, WhatIsNoRequestIsNamedWithItsStatus) {
  Open(1 << 20, /*body_limit=*/4);
  const std::string long_line(2 * kHeaderBytes, 'a');
  const std::string chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const auto& [bytes, status] : {std::pair(std::string("no request\r\n\r\n"), 400),
                                      {"GET / HTTP/1.1\r\nA b: c\r\n\r\n", 400},
                                      {"GET /" + long_line, 431},
                                      {"GET / HTTP/1.1\r\nA: " + long_line + "\r\n\r\n", 431},
                                      {chunked + "1;" + long_line, 431},
                                      {std::string(kPost), 413},
                                      {chunked + "5\r\nhello\r\n", 413}}) {
    SCOPED_TRACE(bytes.substr(0, 60));
    Open(1 << 20, /*body_limit=*/4);
    EXPECT_EQ(Feed(bytes).back(), Event::kMalformed);
    EXPECT_EQ(reader_->fault().status, status);
  }
  EXPECT_THAT(reader_->fault().message, HasSubstr("more than 4 bytes"));
  EXPECT_EQ(reader_->head().path, "/");
}

TEST_F(HttpRequestReaderTest, FieldsOfAHeaderAreCountedAsEachTakesMemory) {
  const auto with = [](int fields) {
    std::string get = "GET / HTTP/1.1\r\n";
    for (int i = 0; i < fields; ++i) get += "a:\r\n";
    return get + "\r\n";
  };
  EXPECT_EQ(Feed(with(128)).back(), Event::kDone);
  Open(1 << 20);
  EXPECT_EQ(Feed(with(129)).back(), Event::kMalformed);
  EXPECT_EQ(reader_->fault().status, 431);
  EXPECT_THAT(reader_->fault().message, HasSubstr("more than 128 fields"));
  Open(1 << 20);
  std::string chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n";
  for (int i = 0; i < 129; ++i) chunked += "a:\r\n";
  EXPECT_EQ(Feed(chunked + "\r\n").back(), Event::kMalformed);
}

TEST_F(HttpRequestReaderTest, ALongHeadTakesMemoryOrFindsNone) {
  const std::string get = "GET / HTTP/1.1\r\nA: " + std::string(8'000, 'a') + "\r\n\r\n";
  memory_ = std::make_shared<ByteBudget>(40'000);
  reader_ = std::make_unique<HttpRequestReader>(/*header_bytes=*/10'000, memory_);
  body_limit_ = 100;
  EXPECT_EQ(Feed(get).back(), Event::kDone);
  {
    const HttpRequest request = reader_->TakeRequest();
    reader_->Reset();
    EXPECT_LE(memory_->left(), 40'000u - 16'000);
    EXPECT_EQ(reader_->held(), 0u);
  }
  EXPECT_EQ(memory_->left(), 40'000u);
  ASSERT_TRUE(memory_->Take(20'000));
  EXPECT_EQ(Feed(get).back(), Event::kNoRoom);
  reader_->Forget();
  EXPECT_EQ(memory_->left(), 20'000u);
}

TEST_F(HttpRequestReaderTest, ABodyTakesMemoryAsItComesAndGivesItBackWithTheRequest) {
  const std::size_t all = 1 << 20;
  Feed("POST / HTTP/1.1\r\nContent-Length: 200000\r\n\r\n");
  EXPECT_FALSE(reader_->Room().empty());
  EXPECT_EQ(memory_->left(), all);
  Feed(std::string(20'000, 'x'));
  EXPECT_LE(memory_->left(), all - 20'000);
  EXPECT_GE(memory_->left(), all - 2 * 20'000 - 2 * 20'000);  // the body, and room to read on
  Feed(std::string(180'000, 'x'));
  {
    const HttpRequest request = reader_->TakeRequest();
    EXPECT_EQ(request.body, std::string(200'000, 'x'));
    reader_->Reset();
    EXPECT_EQ(memory_->left(), all - 200'000);  // the body's alone
  }
  EXPECT_EQ(memory_->left(), all);
}

TEST_F(HttpRequestReaderTest, ABodyThatFindsNoMemoryIsToldAtOnceWhereItsLengthIsKnown) {
  Open(10'000);
  EXPECT_THAT(Feed("POST / HTTP/1.1\r\nContent-Length: 20000\r\n\r\n"),
              ElementsAre(Event::kBegun, Event::kHead, Event::kNoRoom));
}

TEST_F(HttpRequestReaderTest, ABodyOfUnknownLengthTakesMemoryAsItGrows) {
  Open(200'000);
  std::string bytes = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 30; ++i) bytes += "2710\r\n" + std::string(10'000, 'x') + "\r\n";
  EXPECT_EQ(Feed(bytes).back(), Event::kNoRoom);
  reader_->DropBody();
  EXPECT_GE(memory_->left(), 100'000u);
}

TEST_F(HttpRequestReaderTest, TheFirstBytesOfARequestTakeNoneOfTheMemoryInHoweverManyPieces) {
  Open(100);
  const std::string get = "GET / HTTP/1.1\r\nA: " + std::string(800, 'a') + "\r\n\r\n";
  EXPECT_THAT(Feed(get, 7), ElementsAre(Event::kBegun, Event::kHead, Event::kDone));
  EXPECT_EQ(memory_->left(), 100u);
}

TEST_F(HttpRequestReaderTest, ThereIsNoRoomForBytesWithoutMemoryBeyondTheFirst) {
  memory_ = std::make_shared<ByteBudget>(100);
  reader_ = std::make_unique<HttpRequestReader>(/*header_bytes=*/10'000, memory_);
  body_limit_ = 1 << 20;
  Feed("GET /" + std::string(5000, 'a'));  // which the parser leaves until the line ends
  EXPECT_TRUE(reader_->Room().empty());
}

}  // namespace
}  // namespace troupe
