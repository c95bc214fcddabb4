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
      exchange_->Abandon();
    } else if (!exchange_->ended()) {
      exchange_->End();
    }
  }

  void Send(HttpResponse response) override { exchange_->Send(std::move(response)); }
  void Begin(HttpResponse head) override { exchange_->Begin(std::move(head)); }
  bool Write(std::string_view bytes) override { return exchange_->Write(bytes); }
  void End() override { exchange_->End(); }
  void Break(int status) override { exchange_->Break(status); }
  bool MayBreak() const override { return exchange_->MayBreak(); }
  void Note(HttpUse use) override { exchange_->Note(std::move(use)); }
  void WhenGone(std::function<void()> call) override {
    exchange_->outbox().WhenClosed(std::move(call));
  }
  void WhenDoubted(std::function<bool()> call) override { exchange_->WhenDoubted(std::move(call)); }

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
  ending_ = true;  // nothing follows, also where it is turned away
  outbox_.ForgetWhenClosed();
  if (PutWhole(std::move(response))) return;
  turned_away_ = true;
  wake_();
}

void HttpExchange::Abandon() {
  TROUPE_CHECK(!begun_.exchange(true));
  ending_ = true;
  outbox_.ForgetWhenClosed();
  abandoned_ = true;
  wake_();
}

void HttpExchange::WhenDoubted(std::function<bool()> call) {
  const MutexLock lock(mu_);
  in_doubt_ = std::move(call);
}

std::optional<bool> HttpExchange::AskInDoubt() {
  std::function<bool()> ask;
  {
    const MutexLock lock(mu_);
    ask = in_doubt_;
  }
  if (!ask) return std::nullopt;
  return ask();
}

void HttpExchange::SendInstead(HttpResponse response) {
  TROUPE_CHECK(turned_away_.exchange(false) || abandoned_.exchange(false));
  if (!PutWhole(std::move(response))) overflowed_ = true;
}

// False: it found no room.
bool HttpExchange::PutWhole(HttpResponse response) {
  status_ = response.status;
  TakeId(response);
  HttpHeaders more = Connection();
  if (response.status != 204 && response.status != 304) {
    more.emplace_back("Content-Length", fmt::format("{}", response.body.size()));
  }
  std::string bytes = HeadOf(response, more);
  if (!facts_.head) bytes += response.body;
  std::string().swap(response.body);  // large ones are not held twice
  const HttpOutbox::Put put = outbox_.Add(std::move(bytes));
  if (put == HttpOutbox::Put::kFull) return false;
  ended_ = true;
  if (put != HttpOutbox::Put::kGone) wake_();
  return true;
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

// Without the last chunk, and the connection ends.
void HttpExchange::Break(int status) {
  TROUPE_CHECK(begun_ && MayBreak());
  if (ending_.exchange(true)) return;
  outbox_.ForgetWhenClosed();
  status_ = status;
  broken_ = true;
  keep_alive_ = false;
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
