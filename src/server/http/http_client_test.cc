// The client over real sockets, asking the server that comes with it.
#include "server/http/http_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/sanitized.h"
#include "server/http/http_server.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using namespace std::chrono_literals;

class HttpClientTest : public testing::Test {
 protected:
  void SetUp() override {
    auto server = HttpServer::Listen({.port = 0, .certificate = "", .key = ""},
                                     {.handle = [this](HttpRequest request, HttpReplyPtr reply) {
                                       Handle(std::move(request), std::move(reply));
                                     }});
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    server_ = *std::move(server);
    url_ = ParseHttpUrl(server_->Address()).value();
  }

  void Handle(HttpRequest request, HttpReplyPtr reply) {
    if (request.path == "/base/echo") {
      return reply->Send({.status = 201,
                          .content_type = "text/plain",
                          .headers = {{"X-Key", std::string(request.Header("x-key"))}},
                          .body = request.method + " " + request.body});
    }
    if (request.path == "/once") {
      const MutexLock lock(mu_);
      if (peers_.insert(request.peer).second) return reply->Send({.body = "here"});
      swallowed_.push_back(reply);
      return;
    }
    if (request.path == "/long") return reply->Send({.body = std::string(100'000, 'x')});
    {
      const MutexLock lock(mu_);
      kept_ = reply;  // or the client would be answered with 500
    }
    if (request.path == "/stream") {
      reply->Begin({.content_type = "text/event-stream"});
      reply->Write("one");
    }
  }

  Result<HttpResponse> Get(std::string path, HttpClientOptions options = {}) {
    return AskHttp(url_, {.method = "GET", .path = std::move(path)}, options, 1 << 20);
  }

  HttpReplyPtr Kept() {
    const MutexLock lock(mu_);
    return kept_;
  }

  std::unique_ptr<HttpServer> server_;
  HttpUrl url_;
  Mutex mu_;
  HttpReplyPtr kept_ TROUPE_GUARDED_BY(mu_);
  // Of /once, which a connection answers once: then it is as dead, and says nothing.
  std::set<std::string> peers_ TROUPE_GUARDED_BY(mu_);
  std::vector<HttpReplyPtr> swallowed_ TROUPE_GUARDED_BY(mu_);
};

TEST_F(HttpClientTest, GetsTheResponseToWhatItAsks) {
  url_.path = "/base";
  const HttpResponse response =
      AskHttp(url_,
              {.method = "POST", .path = "/echo", .headers = {{"X-Key", "k"}}, .body = "hello"},
              HttpClientOptions())
          .value();
  EXPECT_EQ(response.status, 201);
  EXPECT_EQ(response.content_type, "text/plain");
  EXPECT_EQ(HeaderOf(response.headers, "x-key"), "k");
  EXPECT_EQ(response.body, "POST hello");
}

TEST_F(HttpClientTest, LongResponsesComeWholeOrAreRefused) {
  EXPECT_EQ(Get("/long")->body, std::string(100'000, 'x'));
  const auto refused = AskHttp(url_, {.method = "GET", .path = "/long"}, {}, 99'999);
  EXPECT_EQ(refused.status().code(), Code::kDataLoss);
}

TEST_F(HttpClientTest, APieceIsToldBeforeTheResponseEnds) {
  HttpClient client({});
  std::string body;
  int heads = 0;
  std::optional<Status> ended;
  client.Start(url_, {.method = "GET", .path = "/stream"},
               {.on_head = [&](const HttpResponse& head) { heads += head.status == 200 ? 1 : 0; },
                .on_piece =
                    [&](std::string_view piece) {
                      body += piece;
                      if (body != "one") return;  // the rest comes only after this was told
                      const HttpReplyPtr kept = Kept();
                      kept->Write("two");
                      kept->End();
                    },
                .on_end = [&](const Status& status) { ended = status; }});
  client.Run();
  EXPECT_EQ(body, "onetwo");
  EXPECT_EQ(heads, 1);
  EXPECT_EQ(ended, OkStatus());
}

#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
std::size_t BytesInUse() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

TEST_F(HttpClientTest, WhatWasAskedIsLetGoOfOnceTheResponseBegins) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer has an allocator of its own";
  constexpr std::size_t kBody = 8 << 20;
  HttpClient client({.kept_connections = 1});
  const std::size_t before = BytesInUse();
  client.Start(url_, {.method = "POST", .path = "/stream", .body = std::string(kBody, 'x')},
               {.on_end = [](const Status& status) { EXPECT_TRUE(status.ok()); }});
  ASSERT_GT(BytesInUse(), before + kBody / 2);
  constexpr int kMostLooks = 3000;
  int looks = 0;
  std::function<void()> look = [&] {  // the server lets go of the body as well
    const HttpReplyPtr kept = Kept();
    const bool holds = kept == nullptr || BytesInUse() > before + kBody / 2;
    if (holds && ++looks < kMostLooks) return client.After(10ms, look);
    if (kept != nullptr) kept->End();
  };
  client.After(10ms, look);
  client.Run();
  EXPECT_LT(looks, kMostLooks);
}
#endif

TEST_F(HttpClientTest, ManyRequestsAreUnderWayAtATime) {
  HttpClient client({});
  url_.path = "/base";
  int ended = 0;
  std::function<void()> ask = [&] {
    client.Start(url_, {.method = "GET", .path = "/echo"},
                 {.on_end = [&](const Status& status) { ended += status.ok() ? 1 : 0; }});
  };
  for (int i = 0; i < 20; ++i) ask();
  client.After(1ms, ask);
  client.Run();
  EXPECT_EQ(ended, 21);
}

TEST_F(HttpClientTest, RequestsThatFollowOneAnotherShareAKeptConnection) {
  for (const std::size_t kept : {0U, 1U}) {
    const std::uint64_t before = server_->counters().accepted;
    HttpClient client({.kept_connections = kept});
    url_.path = "/base";
    int answers = 0;
    std::string last;
    std::function<void()> ask = [&] {
      last.clear();
      client.Start(url_, {.method = "POST", .path = "/echo", .body = "hello"},
                   {.on_piece = [&](std::string_view piece) { last += piece; },
                    .on_end =
                        [&](const Status& status) {
                          ASSERT_TRUE(status.ok()) << status.ToString();
                          ASSERT_EQ(last, "POST hello");
                          if (++answers < 5) ask();
                        }});
    };
    ask();
    client.Run();
    EXPECT_EQ(answers, 5);
    EXPECT_EQ(server_->counters().accepted - before, kept == 0 ? 5U : 1U);
  }
}

TEST_F(HttpClientTest, AKeptConnectionThatWasClosedMeanwhileIsReplaced) {
  HttpClient client({.kept_connections = 2});
  url_.path = "/base";
  std::optional<Status> ended;
  const auto ask = [&] {
    client.Start(url_, {.method = "GET", .path = "/echo"},
                 {.on_end = [&](const Status& status) { ended = status; }});
    client.Run();
  };
  ask();
  EXPECT_EQ(ended, OkStatus());
  const std::uint16_t port = server_->port();
  server_.reset();
  auto again = HttpServer::Listen({.port = port, .certificate = "", .key = ""},
                                  {.handle = [this](HttpRequest request, HttpReplyPtr reply) {
                                    Handle(std::move(request), std::move(reply));
                                  }});
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  server_ = *std::move(again);
  ask();
  EXPECT_EQ(ended, OkStatus());
  server_.reset();
  ask();
  EXPECT_EQ(ended->code(), Code::kUnavailable);
}

TEST_F(HttpClientTest, WhereAKeptConnectionFallsSilentTheOthersAreNotTried) {
  // Of live answers, too: as long as a loaded machine may need for one.
  HttpClient client({.silence = 3s, .kept_connections = 4});
  std::vector<Code> ended;
  const auto ask = [&](int times) {
    ended.clear();
    for (int i = 0; i < times; ++i) {
      client.Start(url_, {.method = "GET", .path = "/once"},
                   {.on_end = [&](const Status& status) { ended.push_back(status.code()); }});
    }
    client.Run();
    return ended;
  };
  EXPECT_THAT(ask(3), ElementsAre(Code::kOk, Code::kOk, Code::kOk));
  EXPECT_THAT(ask(1), ElementsAre(Code::kDeadlineExceeded));
  EXPECT_THAT(ask(1), ElementsAre(Code::kOk)) << "on a new one";
  client.Forget(url_);
  EXPECT_THAT(ask(1), ElementsAre(Code::kOk)) << "as was said";
}

TEST_F(HttpClientTest, AKeptConnectionThatWasIdleForLongIsNotUsed) {
  HttpClient client({.silence = 20s, .kept_connections = 4, .kept_for = 1ms});
  for (int round = 0; round < 2; ++round) {
    std::optional<Status> ended;
    client.Start(url_, {.method = "GET", .path = "/once"},
                 {.on_end = [&](const Status& status) { ended = status; }});
    client.Run();
    EXPECT_EQ(ended, OkStatus()) << round;
    std::this_thread::sleep_for(20ms);
  }
}

TEST_F(HttpClientTest, WhoSaysNothingIsWaitedForOnlySoLong) {
  const Result<HttpResponse> whole = Get("/silent", {.whole = 50ms});
  EXPECT_EQ(whole.status().code(), Code::kDeadlineExceeded);
  const Result<HttpResponse> silence = Get("/stream", {.silence = 50ms});
  EXPECT_EQ(silence.status().code(), Code::kDeadlineExceeded);
  EXPECT_THAT(silence.status().message(), HasSubstr(server_->Address()));
}

TEST_F(HttpClientTest, AResponseThatIsCutOffIsAnError) {
  HttpClient client({});
  Status ended;
  std::thread breaking;
  client.Start(
      url_, {.method = "GET", .path = "/stream"},
      {.on_piece = [&](std::string_view) { breaking = std::thread([this] { server_.reset(); }); },
       .on_end = [&](const Status& status) { ended = status; }});
  client.Run();
  breaking.join();
  EXPECT_EQ(ended.code(), Code::kDataLoss) << ended.ToString();
}

TEST_F(HttpClientTest, AServerThatIsNotThereIsNamed) {
  const std::string address = server_->Address();
  server_.reset();
  const Result<HttpResponse> response = Get("/long");
  EXPECT_EQ(response.status().code(), Code::kUnavailable);
  EXPECT_THAT(response.status().message(), HasSubstr(address + ": Connection refused"));
  url_.host = "no-such-host.invalid";
  EXPECT_EQ(Get("/long").status().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace troupe
