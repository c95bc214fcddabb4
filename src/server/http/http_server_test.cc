// The server over real sockets of this machine, asked by a client that says every byte itself.
#include "server/http/http_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <mutex>
#include <thread>

namespace troupe {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;
using namespace std::chrono_literals;

// A connection whose bytes a test says and reads.
class Wire {
 public:
  explicit Wire(std::uint16_t port, int receive_buffer = 0)
      : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer > 0) {
      ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    }
    sockaddr_in address{
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {}, .sin_zero = {}};
    ::inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const timeval longest{.tv_sec = 20, .tv_usec = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest);
  }
  Wire(Wire&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~Wire() { Leave(); }

  void Say(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
  // Until that text has come, or the connection has ended.
  std::string ReadUntil(std::string_view end) {
    std::string all;
    char byte = 0;
    while (!all.ends_with(end) && ::recv(fd_, &byte, 1, 0) == 1) all += byte;
    return all;
  }
  std::string ReadAll() {
    std::string all;
    char bytes[4096];
    for (ssize_t got; (got = ::recv(fd_, bytes, sizeof bytes, 0)) > 0;)
      all.append(bytes, static_cast<std::size_t>(got));
    return all;
  }
  void Leave() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_;
};

std::string Get(std::string_view path, std::string_view more = "") {
  return fmt::format("GET {} HTTP/1.1\r\nHost: a\r\n{}\r\n", path, more);
}

std::string Post(std::string_view path, std::string_view body) {
  return fmt::format("POST {} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{}", path,
                     body.size(), body);
}

class HttpServerTest : public testing::Test {
 protected:
  void Open(HttpLimits limits = {}) {
    server_.reset();
    auto server = HttpServer::Listen(
        {.port = 0, .limits = limits, .certificate = "", .key = ""},
        {.handle = [this](HttpRequest request,
                          HttpReplyPtr reply) { Handle(std::move(request), std::move(reply)); },
         .refusal = Refusal,
         .log =
             [this](const HttpEnded& ended) {
               const std::lock_guard lock(log_mu_);
               log_.push_back(ended);
             }});
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    server_ = *std::move(server);
  }
  void SetUp() override { Open(); }

  static std::optional<HttpResponse> Refusal(const HttpRequest& head) {
    if (head.path != "/closed") return std::nullopt;
    return HttpResponse{.status = 401, .content_type = "text/plain", .body = "no key"};
  }
  virtual void Handle(HttpRequest request, HttpReplyPtr reply) {
    if (request.path == "/echo") {
      reply->Send({.content_type = "text/plain", .body = request.method + " " + request.body});
    } else if (request.path == "/stream") {
      reply->Begin({.content_type = "text/event-stream"});
      reply->WhenGone([this] { gone_.set_value(); });
      reply->Write("data: 1\n\n");
      begun_.set_value(std::move(reply));
    } else if (request.path == "/wait") {
      waiting_.set_value();
      told_.get_future().wait();
      reply->Send({.content_type = "text/plain", .body = "told"});
    } else if (request.path == "/count") {
      const int now = ++at_once_;
      if (now > most_at_once_) most_at_once_ = now;
      std::this_thread::sleep_for(2ms);
      --at_once_;
      reply->Send({.content_type = "text/plain", .body = "counted"});
    } else if (request.path == "/forget") {
      return;
    } else {
      reply->Send({.status = 404, .content_type = "text/plain", .body = request.path});
    }
  }
  Wire Connect() { return Wire(server_->port()); }
  std::string Ask(std::string_view bytes) {
    Wire wire = Connect();
    wire.Say(bytes);
    return wire.ReadAll();
  }
  bool Happens(auto condition) {
    for (int i = 0; i < 2000; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(10ms);
    }
    return false;
  }

  // The nth request that was over, when it is.
  HttpEnded Logged(std::size_t n) {
    const auto size = [this] {
      const std::lock_guard lock(log_mu_);
      return log_.size();
    };
    EXPECT_TRUE(Happens([&] { return size() > n; }));
    const std::lock_guard lock(log_mu_);
    return log_.at(n);
  }

  // Of /stream, once its handler has returned it.
  HttpReplyPtr Kept() { return kept_.get(); }
  void Forget() { kept_ = {}; }

  std::promise<HttpReplyPtr> begun_;
  std::shared_future<HttpReplyPtr> kept_ = begun_.get_future().share();
  std::promise<void> gone_, waiting_, told_;
  std::atomic<int> at_once_ = 0, most_at_once_ = 0;
  std::mutex log_mu_;
  std::vector<HttpEnded> log_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, AnswersOneRequestAfterTheOtherOnAConnection) {
  Wire wire = Connect();
  wire.Say(Post("/echo", "one"));
  EXPECT_THAT(wire.ReadUntil("one"), StartsWith("HTTP/1.1 200 OK\r\n"));
  wire.Say(Get("/echo"));
  EXPECT_THAT(wire.ReadUntil("GET "), HasSubstr("200 OK"));
  EXPECT_EQ(server_->counters().requests, 2u);
  EXPECT_EQ(server_->counters().accepted, 1u);
}

TEST_F(HttpServerTest, RequestsThatAreSentAheadAreAnsweredInTheirOrder) {
  Wire wire = Connect();
  wire.Say(Post("/echo", "one") + Post("/echo", "two") + Post("/echo", "three"));
  EXPECT_THAT(wire.ReadUntil("three"),
              testing::ContainsRegex("POST one(.|\n|\r)*POST two(.|\n|\r)*POST three"));
}

TEST_F(HttpServerTest, APathsEscapesAreDecodedAndItsQueryLeftOut) {
  EXPECT_THAT(Ask(Get("/a%20b?c=d", "Connection: close\r\n")), EndsWith("\r\n\r\n/a b"));
}

TEST_F(HttpServerTest, ABodyMayComeByteByByteAndInChunks) {
  Wire wire = Connect();
  for (const char c : Post("/echo", "slow")) wire.Say({&c, 1});
  EXPECT_THAT(wire.ReadUntil("POST slow"), HasSubstr("200 OK"));
  wire.Say(
      "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
      "chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
  EXPECT_THAT(wire.ReadUntil("POST abcde"), HasSubstr("200 OK"));
}

TEST_F(HttpServerTest, WhoWaitsToBeAskedForTheBodyIsAsked) {
  Wire wire = Connect();
  wire.Say("POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(wire.ReadUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  wire.Say("ab");
  EXPECT_THAT(wire.ReadUntil("POST ab"), HasSubstr("200 OK"));
}

TEST_F(HttpServerTest, WhatIsNoHttpGetsAnErrorAndIsClosed) {
  for (const char* bytes : {"GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "\x16\x03\x01\x02",
                            "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
                            "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
                            "GET / HTTP/1.1\r\nA b: c\r\n\r\n"}) {
    Wire wire = Connect();
    wire.Say(bytes);
    wire.Say(std::string(200, 'x'));
    EXPECT_THAT(wire.ReadAll(), StartsWith("HTTP/1.1 400 ")) << bytes;
  }
  EXPECT_GT(server_->counters().malformed, 0u);
}

TEST_F(HttpServerTest, AHeaderOrBodyThatIsTooLongIsRefused) {
  Open({.header_bytes = 1000, .body_bytes = 100});
  EXPECT_THAT(Ask(Get("/echo", "A: " + std::string(2000, 'a') + "\r\n")),
              StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(Ask(Post("/echo", std::string(101, 'a'))), StartsWith("HTTP/1.1 413 "));
}

TEST_F(HttpServerTest, AnotherLimitOfBodiesHoldsForTheNextRequestOfAConnection) {
  Open({.body_bytes = 100});
  Wire wire(server_->port());
  wire.Say(Post("/echo", "a"));
  EXPECT_THAT(wire.ReadUntil("POST a"), StartsWith("HTTP/1.1 200 "));
  server_->set_body_bytes(200);
  wire.Say(Post("/echo", std::string(150, 'b')));
  EXPECT_THAT(wire.ReadUntil("POST " + std::string(150, 'b')), StartsWith("HTTP/1.1 200 "));
  server_->set_body_bytes(100);
  wire.Say(Post("/echo", std::string(101, 'c')));
  EXPECT_THAT(wire.ReadAll(), HasSubstr("HTTP/1.1 413 "));
}

TEST_F(HttpServerTest, ALineThatNeverEndsIsRefusedWhereverItStands) {
  Open({.header_bytes = 10'000});
  const std::string endless(100'000, 'a');
  EXPECT_THAT(Ask("GET /" + endless), StartsWith("HTTP/1.1 4"));
  EXPECT_THAT(
      Ask("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;" + endless),
      StartsWith("HTTP/1.1 4"));
}

TEST_F(HttpServerTest, BlankLinesBehindABodyAreNoRequest) {
  Wire wire = Connect();
  wire.Say(Post("/echo", "one") + "\r\n");
  EXPECT_THAT(wire.ReadUntil("POST one"), HasSubstr("200 OK"));
  wire.Say(Post("/echo", "two"));
  EXPECT_THAT(wire.ReadUntil("POST two"), HasSubstr("200 OK"));
}

TEST_F(HttpServerTest, WhatIsNoRequestBehindOneIsRefusedAfterItsAnswer) {
  Wire wire = Connect();
  wire.Say(Get("/stream") + "no request\r\n\r\n");
  wire.ReadUntil("data: 1\n\n");
  Kept()->Write("data: 2\n\n");
  Kept()->End();
  Forget();
  EXPECT_THAT(wire.ReadAll(), testing::ContainsRegex("data: 2(.|\n|\r)*HTTP/1.1 400 "));
}

TEST_F(HttpServerTest, WhoWaitsBehindAnAnswerToBeAskedForABodyIsAsked) {
  Wire wire = Connect();
  wire.Say(Get("/stream") +
           "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  wire.ReadUntil("data: 1\n\n");
  Kept()->End();
  EXPECT_THAT(wire.ReadUntil("100 Continue\r\n\r\n"), HasSubstr("HTTP/1.1 100 Continue"));
  wire.Say("ab");
  EXPECT_THAT(wire.ReadUntil("POST ab"), HasSubstr("200 OK"));
  Forget();
}

TEST_F(HttpServerTest, WhoMayNotAskIsToldBeforeTheBodyIsRead) {
  Wire wire = Connect();
  wire.Say("POST /closed HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
  EXPECT_THAT(wire.ReadAll(), AllOf(StartsWith("HTTP/1.1 401 "), EndsWith("no key")));
  EXPECT_EQ(server_->counters().refused, 1u);
}

TEST_F(HttpServerTest, AConnectionGoesOnAfterARefusalWithoutABody) {
  Wire wire = Connect();
  wire.Say(Get("/closed") + Get("/echo", "Connection: close\r\n"));
  EXPECT_THAT(wire.ReadAll(), AllOf(StartsWith("HTTP/1.1 401 "), EndsWith("GET ")));
}

TEST_F(HttpServerTest, ARefusalWaitsForTheResponseBeforeIt) {
  Wire wire = Connect();
  wire.Say(Get("/stream") + Get("/closed"));
  wire.ReadUntil("data: 1\n\n");
  Kept()->End();
  Forget();
  EXPECT_THAT(wire.ReadAll(), EndsWith("no key"));
}

TEST_F(HttpServerTest, BodiesThatFindNoMemoryAreToldToComeAgain) {
  Open({.all_bytes = 120'000});
  Wire holds = Connect();  // the first half, of which the rest does not come
  holds.Say("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 20000\r\n\r\n" +
            std::string(10'000, 'x'));
  const std::string large = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n";
  ASSERT_TRUE(Happens([&] {
    const std::string answer = Ask(large);
    return answer.starts_with("HTTP/1.1 503 ") && answer.find("Retry-After: 1") != answer.npos;
  }));
  EXPECT_GT(server_->counters().no_room, 0u);
  holds.Say(std::string(10'000, 'x'));
  EXPECT_THAT(holds.ReadUntil("HTTP/1.1 200 OK"), EndsWith("200 OK"));
}

TEST_F(HttpServerTest, BodiesOfUnknownLengthFindNoMoreMemoryThanOthers) {
  Open({.all_bytes = 200'000});
  Wire wire = Connect();
  wire.Say("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 30; ++i) wire.Say("2710\r\n" + std::string(10'000, 'x') + "\r\n");
  EXPECT_THAT(wire.ReadAll(), StartsWith("HTTP/1.1 503 "));
}

TEST_F(HttpServerTest, ARequestWithoutABodyDoesNotWaitForThoseWithOne) {
  Wire slow = Connect();
  slow.Say(Post("/wait", "until it is told"));
  waiting_.get_future().wait();
  EXPECT_THAT(Ask(Get("/echo", "Connection: close\r\n")), EndsWith("GET "));
  told_.set_value();
  EXPECT_THAT(slow.ReadUntil("told"), EndsWith("told"));
}

TEST_F(HttpServerTest, ASmallBodyDoesNotWaitForALargeOne) {
  Wire slow = Connect();
  slow.Say(Post("/wait", std::string(kSmallBodyBytes + 1, 'x')));
  waiting_.get_future().wait();
  Wire quick = Connect();
  const std::string small(kSmallBodyBytes, 'y');
  quick.Say(Post("/echo", small));
  EXPECT_THAT(quick.ReadUntil(small), EndsWith("POST " + small));
  EXPECT_EQ(server_->counters().overtook, 1u);
  told_.set_value();
  EXPECT_THAT(slow.ReadUntil("told"), EndsWith("told"));
  quick.Say(Post("/echo", "z"));
  EXPECT_THAT(quick.ReadUntil("POST z"), EndsWith("POST z"));
}

TEST_F(HttpServerTest, LargeBodiesAreHandledOneAtATime) {
  std::vector<Wire> wires;
  for (int i = 0; i < 8; ++i) {
    wires.push_back(Connect());
    wires.back().Say(Post("/count", std::string(kSmallBodyBytes + 1, 'x')));
  }
  for (Wire& wire : wires) EXPECT_THAT(wire.ReadUntil("counted"), EndsWith("counted"));
  EXPECT_EQ(most_at_once_, 1);
}

TEST_F(HttpServerTest, ARequestThatDoesNotComeToItsEndIsEnded) {
  Open({.header_time = 50ms, .body_time = 50ms});
  EXPECT_THAT(Ask("GET /ec"), StartsWith("HTTP/1.1 408 "));
  EXPECT_THAT(Ask("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab"),
              StartsWith("HTTP/1.1 408 "));
  EXPECT_EQ(server_->counters().timed_out, 2u);
}

TEST_F(HttpServerTest, WhoGoesOnSayingLittleAfterHisTimeHoldsUpNobody) {
  Open({.header_time = 50ms});
  Wire slow = Connect();
  slow.Say("GET /ec");
  EXPECT_THAT(slow.ReadUntil("\r\n\r\n"), StartsWith("HTTP/1.1 408 "));
  slow.Say("h");
  EXPECT_THAT(Ask(Get("/echo", "Connection: close\r\n")), StartsWith("HTTP/1.1 200 OK"));
}

TEST_F(HttpServerTest, AConnectionThatSaysNothingIsClosed) {
  Open({.idle_time = 50ms});
  EXPECT_EQ(Ask(""), "");
}

TEST_F(HttpServerTest, AHandlerThatForgetsItsReplyIsAnError) {
  EXPECT_THAT(Ask(Get("/forget", "Connection: close\r\n")), StartsWith("HTTP/1.1 500 "));
}

TEST_F(HttpServerTest, AClientWhoLeavesAStreamIsNoticed) {
  Wire wire = Connect();
  wire.Say(Get("/stream"));
  EXPECT_THAT(wire.ReadUntil("data: 1\n\n"), HasSubstr("text/event-stream"));
  wire.Leave();
  EXPECT_EQ(gone_.get_future().wait_for(20s), std::future_status::ready);
  EXPECT_TRUE(Happens([&] { return server_->counters().connections == 0; }));
  EXPECT_FALSE(Kept()->Write("data: 2\n\n"));
}

TEST_F(HttpServerTest, AReaderWhoDoesNotReadHoldsUpNobodyAndIsLetGo) {
  Open({.unread_bytes = 100'000});
  Wire slow(server_->port(), /*receive_buffer=*/4096);
  slow.Say(Get("/stream"));
  Kept();
  const std::string piece(10'000, 'x');
  while (Kept()->Write(piece)) {
    EXPECT_THAT(Ask(Get("/echo", "Connection: close\r\n")), StartsWith("HTTP/1.1 200 OK"));
  }
  EXPECT_TRUE(Happens([&] { return server_->counters().too_slow == 1; }));
  const auto was_too_slow = [](const HttpEnded& ended) {
    return ended.how == HttpEnded::How::kTooSlow && ended.path == "/stream";
  };
  const std::lock_guard lock(log_mu_);
  EXPECT_EQ(std::ranges::count_if(log_, was_too_slow), 1);
}

TEST_F(HttpServerTest, DrainingEndsIdleConnectionsAndWaitsForStreams) {
  Wire idle = Connect();
  idle.Say(Post("/echo", "one"));
  idle.ReadUntil("one");
  Wire streaming = Connect();
  streaming.Say(Get("/stream"));
  streaming.ReadUntil("data: 1\n\n");
  EXPECT_FALSE(server_->Drain(50ms));
  EXPECT_EQ(idle.ReadAll(), "");
  Kept()->Write("data: 2\n\n");
  Kept()->End();
  EXPECT_THAT(streaming.ReadAll(), HasSubstr("data: 2\n\n"));
  Forget();
  EXPECT_TRUE(server_->Drain(20s));
}

TEST_F(HttpServerTest, EveryRequestThatIsOverIsToldOnce) {
  Wire wire = Connect();
  wire.Say(Post("/echo?key=secret", "one") + Get("/closed"));
  wire.ReadUntil("no key");
  HttpEnded ended = Logged(0);
  EXPECT_THAT(ended.peer, StartsWith("127.0.0.1:"));
  EXPECT_EQ(ended.method + " " + ended.path, "POST /echo");
  EXPECT_EQ(ended.status, 200);
  EXPECT_GT(ended.bytes, 30u);
  EXPECT_EQ(ended.how, HttpEnded::How::kAnswered);
  EXPECT_EQ(Logged(1).status, 401);
  Ask("nonsense\r\n\r\n");
  ended = Logged(2);
  EXPECT_EQ(ended.status, 400);
  EXPECT_EQ(ended.path, "");
  Wire leaves = Connect();
  leaves.Say(Get("/stream"));
  leaves.ReadUntil("data: 1\n\n");
  leaves.Leave();
  ended = Logged(3);
  EXPECT_EQ(ended.path, "/stream");
  EXPECT_EQ(ended.how, HttpEnded::How::kLeft);
}

TEST_F(HttpServerTest, MoreClientsThanItTakesWaitForTheirTurn) {
  Open({.connections = 2});
  Wire one = Connect(), two = Connect();
  one.Say(Post("/echo", "one"));
  one.ReadUntil("one");
  two.Say(Post("/echo", "two"));
  two.ReadUntil("two");
  Wire three = Connect();
  three.Say(Post("/echo", "three"));
  one.Leave();
  EXPECT_THAT(three.ReadUntil("three"), HasSubstr("200 OK"));
}

TEST_F(HttpServerTest, APortThatIsTakenIsAnError) {
  const auto second =
      HttpServer::Listen({.port = server_->port(), .certificate = "", .key = ""}, {});
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.status().message(), HasSubstr(std::to_string(server_->port())));
}

TEST_F(HttpServerTest, RepliesMayOutliveTheServer) {
  Wire wire = Connect();
  wire.Say(Get("/stream"));
  wire.ReadUntil("data: 1\n\n");
  server_.reset();
  EXPECT_FALSE(Kept()->Write("data: 2\n\n"));
  Kept()->End();
  Forget();
}

}  // namespace
}  // namespace troupe
