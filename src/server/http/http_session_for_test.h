// Sessions on a connection that a test plays by hand: no socket, no thread, no clock.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/http/http_session.h"

namespace troupe {

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
  bool MayRead() override { return may_read; }
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
    return found == timers.end() ? std::chrono::milliseconds(0) : found->second.first;
  }
  void RunOut(Timer timer) {
    const auto call = timers.at(timer).second;
    timers.erase(timer);
    call();
  }

  std::string_view writing;
  // The client sends nothing more.
  void EndSending() {
    may_read = true;
    std::exchange(read_, nullptr)(false, 0);
  }

  bool lingers = false, closed = false, has_left = false, may_read = false;
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
  void Elsewhere(std::function<void()> call) override { call(); }
  const std::shared_ptr<ByteBudget>& memory() const override { return memory_; }
  bool MakeRoomFor(const HttpSession&) override { return false; }
  const std::shared_ptr<UnreadPool>& unread() const override { return unread_; }
  std::shared_ptr<IoGate> gate() const override { return gate_; }
  bool draining() const override { return draining_; }
  const HttpLimits& limits() const override { return limits_; }
  std::size_t body_bytes() const override { return limits_.body_bytes; }
  void OnMalformed() override { ++malformed_; }
  void OnRefused() override { ++refused_; }
  void OnNoRoom() override { ++no_room_; }
  void OnTimedOut() override { ++timed_out_; }
  void OnTooSlow() override { ++too_slow_; }
  void OnTurnedAway() override { ++turned_away_; }
  void OnCutOff() override { ++cut_off_; }
  bool logs() const override { return true; }
  void OnEnded(const HttpEnded& ended) override { log_.push_back(ended); }

  static std::string Get(const std::string& path) {
    return "GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n";
  }

  HttpLimits limits_{.header_time = std::chrono::milliseconds(1),
                     .body_time = std::chrono::milliseconds(2),
                     .idle_time = std::chrono::milliseconds(3),
                     .write_time = std::chrono::milliseconds(4)};
  bool draining_ = false;
  std::shared_ptr<ByteBudget> memory_ = std::make_shared<ByteBudget>(1 << 20);
  std::shared_ptr<UnreadPool> unread_ = std::make_shared<UnreadPool>(1 << 20);
  std::deque<IoGate::Call> posted_;
  std::shared_ptr<IoGate> gate_ =
      std::make_shared<IoGate>([this](IoGate::Call call) { posted_.push_back(std::move(call)); });
  std::vector<HttpRequest> requests_;
  std::vector<HttpReplyPtr> replies_;
  std::vector<HttpEnded> log_;
  int malformed_ = 0, refused_ = 0, no_room_ = 0, timed_out_ = 0, too_slow_ = 0, turned_away_ = 0,
      cut_off_ = 0;
  std::shared_ptr<FakeWire> wire_ = std::make_shared<FakeWire>();
  std::shared_ptr<HttpSession> session_;
};

}  // namespace troupe
