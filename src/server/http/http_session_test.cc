// Sessions on a connection that a test plays by hand: no socket, no thread, no clock.
#include "server/http/http_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <string_view>
#include <vector>

namespace troupe {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;
using namespace std::chrono_literals;

class FakeWire final : public HttpWire {
 public:
  void Greet(OnDone done) override { done(true); }
  void Read(std::span<char> to, OnBytes done) override {
    to_ = to;
    read_ = std::move(done);
  }
  void Write(std::string_view bytes, OnDone done) override {
    writing = bytes;
    written_ = std::move(done);
  }
  void Linger(std::function<void()>) override { lingers = true; }
  void Close() override {
    closed = true;
    if (read_) std::exchange(read_, nullptr)(false, 0);
    if (written_) std::exchange(written_, nullptr)(false);
  }
  void StartTimer(Timer timer, std::chrono::milliseconds time,
                  std::function<void()> call) override {
    timers[timer] = {time, std::move(call)};
  }
  void StopTimer(Timer timer) override { timers.erase(timer); }
  std::int64_t Delivered() override { return delivered; }
  bool HasLeft() override { return has_left; }
  std::string Peer() override { return "1.2.3.4:5"; }

  bool reads() const { return read_ != nullptr; }
  bool writes() const { return written_ != nullptr; }
  void Come(std::string_view bytes) {
    ASSERT_TRUE(reads());
    bytes.copy(to_.data(), to_.size());
    std::exchange(read_, nullptr)(true, std::min(bytes.size(), to_.size()));
  }
  // Takes what is being written.
  std::string Send() {
    const std::string sent(writing);
    std::exchange(written_, nullptr)(true);
    return sent;
  }
  std::chrono::milliseconds TimeOf(Timer timer) const {
    const auto found = timers.find(timer);
    return found == timers.end() ? 0ms : found->second.first;
  }
  void RunOut(Timer timer) {
    const auto call = timers.at(timer).second;
    timers.erase(timer);
    call();
  }

  std::string_view writing;
  bool lingers = false, closed = false, has_left = false;
  std::int64_t delivered = 0;
  std::map<Timer, std::pair<std::chrono::milliseconds, std::function<void()>>> timers;

 private:
  std::span<char> to_;
  OnBytes read_;
  OnDone written_;
};

class HttpSessionTest : public testing::Test, public SessionOwner {
 protected:
  static constexpr auto kRead = HttpWire::Timer::kRead, kWrite = HttpWire::Timer::kWrite;

  void SetUp() override {
    session_ = std::make_shared<HttpSession>(wire_, *this);
    session_->Start();
  }
  void TearDown() override {
    replies_.clear();
    RunPosted();
    session_->Close();
  }
  // What threads that answer have asked the I/O thread for.
  void RunPosted() {
    while (!posted_.empty()) {
      const IoGate::Call call = std::move(posted_.front());
      posted_.pop_front();
      call();
    }
  }

  void Handle(HttpRequest request, HttpReplyPtr reply) override {
    requests_.push_back(std::move(request));
    replies_.push_back(std::move(reply));
  }
  std::optional<HttpResponse> Refusal(const HttpRequest& head) override {
    if (head.path != "/closed") return std::nullopt;
    return HttpResponse{.status = 401, .body = "no key"};
  }
  HttpResponse ErrorOf(int status, const std::string& message, const HttpRequest&) override {
    return {.status = status, .body = message};
  }
  void Farewell(std::shared_ptr<HttpExchange> exchange) override { exchange->outbox().Close(); }
  const std::shared_ptr<ByteBudget>& memory() const override { return memory_; }
  const std::shared_ptr<UnreadPool>& unread() const override { return unread_; }
  std::shared_ptr<IoGate> gate() const override { return gate_; }
  bool draining() const override { return draining_; }
  const HttpLimits& limits() const override { return limits_; }
  std::size_t body_bytes() const override { return limits_.body_bytes; }
  void OnMalformed() override { ++malformed_; }
  void OnNoRoom() override { ++no_room_; }
  void OnTimedOut() override { ++timed_out_; }
  void OnTooSlow() override { ++too_slow_; }
  bool logs() const override { return true; }
  void OnEnded(const HttpEnded& ended) override { log_.push_back(ended); }

  static std::string Get(const std::string& path) {
    return "GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n";
  }

  HttpLimits limits_{.header_time = 1ms, .body_time = 2ms, .idle_time = 3ms, .write_time = 4ms};
  bool draining_ = false;
  std::shared_ptr<ByteBudget> memory_ = std::make_shared<ByteBudget>(1 << 20);
  std::shared_ptr<UnreadPool> unread_ = std::make_shared<UnreadPool>(1 << 20);
  std::deque<IoGate::Call> posted_;
  std::shared_ptr<IoGate> gate_ =
      std::make_shared<IoGate>([this](IoGate::Call call) { posted_.push_back(std::move(call)); });
  std::vector<HttpRequest> requests_;
  std::vector<HttpReplyPtr> replies_;
  std::vector<HttpEnded> log_;
  int malformed_ = 0, no_room_ = 0, timed_out_ = 0, too_slow_ = 0;
  std::shared_ptr<FakeWire> wire_ = std::make_shared<FakeWire>();
  std::shared_ptr<HttpSession> session_;
};

TEST_F(HttpSessionTest, EachPartOfARequestHasATimeOfItsOwn) {
  EXPECT_EQ(wire_->TimeOf(kRead), limits_.idle_time);
  wire_->Come("POST / HTTP/1.1\r\n");
  EXPECT_EQ(wire_->TimeOf(kRead), limits_.header_time);
  wire_->Come("Content-Length: 2\r\n\r\n");
  EXPECT_EQ(wire_->TimeOf(kRead), limits_.body_time);
  wire_->Come("ab");
  EXPECT_EQ(requests_.at(0).body, "ab");
  EXPECT_EQ(wire_->TimeOf(kRead), 0ms);  // whoever waits for an answer may be silent
  replies_[0]->Send({.body = "{}"});
  RunPosted();
  EXPECT_EQ(wire_->TimeOf(kWrite), limits_.write_time);
  EXPECT_THAT(wire_->Send(), EndsWith("\r\n\r\n{}"));
  EXPECT_EQ(wire_->TimeOf(kWrite), 0ms);
  EXPECT_EQ(wire_->TimeOf(kRead), limits_.idle_time);
}

TEST_F(HttpSessionTest, ARequestThatIsNotWholeInItsTimeIsToldSoAndASilentOneIsClosed) {
  wire_->Come("GET /");
  wire_->RunOut(kRead);
  RunPosted();
  EXPECT_EQ(timed_out_, 1);
  EXPECT_THAT(wire_->Send(), StartsWith("HTTP/1.1 408 "));
  EXPECT_TRUE(wire_->lingers);
  EXPECT_FALSE(wire_->closed);
  wire_->RunOut(kRead);  // it need not linger for ever
  EXPECT_TRUE(wire_->closed);
  wire_ = std::make_shared<FakeWire>();
  SetUp();
  wire_->RunOut(kRead);
  EXPECT_TRUE(wire_->closed);
  EXPECT_EQ(timed_out_, 1);
}

TEST_F(HttpSessionTest, OneRequestIsReadAheadAndNoMore) {
  wire_->Come(Get("/one"));
  wire_->Come(Get("/two") + Get("/three"));
  EXPECT_EQ(requests_.size(), 1u);
  EXPECT_FALSE(wire_->reads());
  replies_[0]->Send({});
  RunPosted();
  wire_->Send();
  ASSERT_EQ(requests_.size(), 2u);
  EXPECT_EQ(requests_[1].path, "/two");
}

TEST_F(HttpSessionTest, WhatIsNoRequestBehindOneIsRefusedAfterItsAnswer) {
  wire_->Come(Get("/one"));
  wire_->Come("nonsense\r\n\r\n");
  EXPECT_EQ(malformed_, 1);
  EXPECT_TRUE(wire_->writing.empty());
  replies_[0]->Send({});
  RunPosted();
  EXPECT_THAT(wire_->Send(), StartsWith("HTTP/1.1 200 "));
  RunPosted();
  EXPECT_THAT(wire_->Send(), StartsWith("HTTP/1.1 400 "));
  EXPECT_TRUE(wire_->lingers);
}

TEST_F(HttpSessionTest, ARefusalOfABodyIsSentBeforeTheBodyIsRead) {
  wire_->Come("POST /closed HTTP/1.1\r\nContent-Length: 9\r\n\r\n");
  RunPosted();
  EXPECT_THAT(wire_->Send(), HasSubstr("401"));
  EXPECT_TRUE(requests_.empty());
  EXPECT_FALSE(wire_->reads());
  EXPECT_TRUE(wire_->lingers);
}

TEST_F(HttpSessionTest, AWriteGoesOnWhileTheClientTakesAnyOfIt) {
  wire_->Come(Get("/"));
  replies_[0]->Send({.body = std::string(100'000, 'x')});
  RunPosted();
  for (int i = 0; i < 10; ++i) {
    wire_->delivered += 1;
    wire_->RunOut(kWrite);
    EXPECT_FALSE(wire_->closed);
  }
  wire_->RunOut(kWrite);
  EXPECT_EQ(too_slow_, 1);
  EXPECT_TRUE(wire_->closed);
}

TEST_F(HttpSessionTest, AWriteThatTakesTooLongLetsTheClientGo) {
  wire_->Come(Get("/"));
  replies_[0]->Begin({});
  RunPosted();
  wire_->RunOut(kWrite);
  EXPECT_EQ(too_slow_, 1);
  EXPECT_TRUE(wire_->closed);
  EXPECT_FALSE(replies_[0]->Write("more"));
  ASSERT_EQ(log_.size(), 1u);
  EXPECT_EQ(log_[0].how, HttpEnded::How::kTooSlow);
  EXPECT_EQ(log_[0].peer, "1.2.3.4:5");
}

TEST_F(HttpSessionTest, AClientThatLeavesBeforeItsAnswerIsNoticed) {
  wire_->Come(Get("/"));
  bool gone = false;
  replies_[0]->WhenGone([&] { gone = true; });
  wire_->Close();
  EXPECT_TRUE(gone);
  ASSERT_EQ(log_.size(), 1u);
  EXPECT_EQ(log_[0].how, HttpEnded::How::kLeft);
}

TEST_F(HttpSessionTest, AClientThatLeavesWithARequestAheadIsNoticed) {
  for (const char* ahead : {"GET /two HTTP/1.1\r\n\r\nGET /three", "nonsense\r\n\r\n",
                            "POST /closed HTTP/1.1\r\nContent-Length: 9\r\n\r\n"}) {
    SCOPED_TRACE(ahead);
    TearDown();
    wire_ = std::make_shared<FakeWire>();
    SetUp();
    wire_->Come(Get("/one"));
    bool gone = false;
    replies_.back()->WhenGone([&] { gone = true; });
    wire_->Come(ahead);
    ASSERT_FALSE(wire_->reads());
    wire_->RunOut(kRead);
    EXPECT_FALSE(gone);
    wire_->has_left = true;
    wire_->RunOut(kRead);
    EXPECT_TRUE(gone);
    EXPECT_TRUE(wire_->closed);
  }
}

TEST_F(HttpSessionTest, ADrainClosesIdleConnectionsAndOthersAfterTheirAnswer) {
  wire_->Come(Get("/"));
  draining_ = true;
  session_->OnDrain();
  EXPECT_FALSE(wire_->closed);
  replies_[0]->Send({});
  RunPosted();
  EXPECT_THAT(wire_->Send(), HasSubstr("Connection: close"));
  EXPECT_TRUE(wire_->lingers);
  session_->Close();
  wire_ = std::make_shared<FakeWire>();
  SetUp();
  session_->OnDrain();
  EXPECT_TRUE(wire_->closed);
}

TEST_F(HttpSessionTest, ADrainLetsARequestThatHasBegunComeToItsEnd) {
  wire_->Come("POST / HTTP/1.1\r\nContent-");
  draining_ = true;
  session_->OnDrain();
  EXPECT_FALSE(wire_->closed);
  wire_->Come("Length: 2\r\n\r\nab");
  ASSERT_EQ(requests_.size(), 1u);
  session_->OnDrain();
  replies_[0]->Send({});
  RunPosted();
  EXPECT_THAT(wire_->Send(), HasSubstr("Connection: close"));
  EXPECT_TRUE(wire_->lingers);
}

TEST_F(HttpSessionTest, ADrainLetsARequestThatHasBegunBehindAnAnswerComeToItsEnd) {
  wire_->Come(Get("/one"));
  replies_[0]->Begin({});
  wire_->Come("GET /two HTTP/1.1\r\n");
  draining_ = true;
  session_->OnDrain();
  replies_[0]->End();
  RunPosted();
  while (wire_->writes()) wire_->Send();
  EXPECT_FALSE(wire_->lingers);
  wire_->Come("\r\n");
  ASSERT_EQ(requests_.size(), 2u);
  replies_[1]->Send({});
  RunPosted();
  EXPECT_THAT(wire_->Send(), HasSubstr("Connection: close"));
  EXPECT_TRUE(wire_->lingers);
}

TEST_F(HttpSessionTest, BytesThatFindNoMemoryCloseTheConnection) {
  ASSERT_TRUE(memory_->Take(memory_->left()));
  wire_->Come("GET /" + std::string(5000, 'a'));
  EXPECT_EQ(no_room_, 1);
  EXPECT_TRUE(wire_->closed);
  memory_->Give(1 << 20);
}

}  // namespace
}  // namespace troupe
