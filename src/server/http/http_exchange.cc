#include "server/http/http_exchange.h"

#include <fmt/core.h>

#include <utility>

#include "base/check.h"

namespace troupe {
namespace {

class ReplyHandle final : public HttpReply {
 public:
  explicit ReplyHandle(std::shared_ptr<HttpExchange> exchange) : exchange_(std::move(exchange)) {}
  ~ReplyHandle() override {
    if (!exchange_->begun()) {
      exchange_->Send({.status = 500,
                       .content_type = "text/plain",
                       .body = "the request was left without an answer\n"});
    } else if (!exchange_->ended()) {
      exchange_->End();
    }
  }

  void Send(HttpResponse response) override { exchange_->Send(std::move(response)); }
  void Begin(HttpResponse head) override { exchange_->Begin(std::move(head)); }
  bool Write(std::string_view bytes) override { return exchange_->Write(bytes); }
  void End() override { exchange_->End(); }
  void Note(HttpUse use) override { exchange_->Note(std::move(use)); }
  void WhenGone(std::function<void()> call) override {
    exchange_->outbox().WhenClosed(std::move(call));
  }

 private:
  std::shared_ptr<HttpExchange> exchange_;
};

}  // namespace

HttpReplyPtr MakeReply(std::shared_ptr<HttpExchange> exchange) {
  return std::make_shared<ReplyHandle>(std::move(exchange));
}

HttpHeaders HttpExchange::Connection() const {
  return {{"Connection", keep_alive() ? "keep-alive" : "close"}};
}

void HttpExchange::TakeId(const HttpResponse& response) {
  const MutexLock lock(mu_);
  id_ = HeaderOf(response.headers, "x-request-id");
}

void HttpExchange::Note(HttpUse use) {
  const MutexLock lock(mu_);
  use_ = std::move(use);
}

void HttpExchange::Tell(HttpEnded& ended) const {
  const MutexLock lock(mu_);
  ended.id = id_;
  ended.use = use_;
}

bool HttpExchange::Put(std::string bytes) {
  switch (outbox_.Add(std::move(bytes))) {
    case HttpOutbox::Put::kTaken:
      return true;
    case HttpOutbox::Put::kTakenAndIdle:
      wake_();
      return true;
    case HttpOutbox::Put::kFull:
      overflowed_ = true;
      wake_();
      return false;
    case HttpOutbox::Put::kGone:
      return false;
  }
  TROUPE_CHECK(false);
}

void HttpExchange::Send(HttpResponse response) {
  TROUPE_CHECK(!begun_.exchange(true));
  status_ = response.status;
  TakeId(response);
  HttpHeaders more = Connection();
  if (response.status != 204 && response.status != 304) {
    more.emplace_back("Content-Length", fmt::format("{}", response.body.size()));
  }
  std::string bytes = HeadOf(response, more);
  if (!facts_.head) bytes += response.body;
  outbox_.ForgetWhenClosed();
  const bool taken = Put(std::move(bytes));
  ended_ = true;
  if (taken) wake_();
}

void HttpExchange::Begin(HttpResponse head) {
  TROUPE_CHECK(!begun_.exchange(true));
  status_ = head.status;
  TakeId(head);
  if (!facts_.chunks) keep_alive_ = false;
  HttpHeaders more = Connection();
  if (facts_.chunks) more.emplace_back("Transfer-Encoding", "chunked");
  more.emplace_back("Cache-Control", "no-cache");
  Put(HeadOf(head, more));
}

bool HttpExchange::Write(std::string_view bytes) {
  TROUPE_CHECK(begun_ && !ended_);
  // A chunk of no bytes would be the end.
  if (facts_.head || bytes.empty()) return !outbox_.closed();
  if (!facts_.chunks) return Put(std::string(bytes));
  return Put(fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes));
}

void HttpExchange::End() {
  TROUPE_CHECK(begun_);
  if (ending_.exchange(true)) return;
  outbox_.ForgetWhenClosed();
  if (facts_.chunks && !facts_.head) Put("0\r\n\r\n");
  ended_ = true;
  wake_();
}

HttpExchange::ToSend HttpExchange::Next() {
  const bool ended = ended_;  // first: what was put before it is found below
  ToSend next{.bytes = outbox_.Take()};
  next.over = ended && next.bytes.empty();
  return next;
}

}  // namespace troupe
