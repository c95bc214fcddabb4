// One connection on the I/O thread: reads requests one ahead of the response that is under way, and
// then looks every second whether the client has left, sends what exchanges put into their
// outboxes, and keeps the time. What a request is, http_request_reader.h knows; bytes and timers
// are http_wire.h's.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "server/http/http_exchange.h"
#include "server/http/http_request_reader.h"
#include "server/http/http_server.h"
#include "server/http/http_wire.h"

namespace troupe {

// Lets threads that answer reach the I/O thread as long as there is one: replies may outlive it.
class IoGate {
 public:
  using Call = std::function<void()>;
  // `post` has a call made on the I/O thread.
  explicit IoGate(std::function<void(Call)> post) : post_(std::move(post)) {}

  void Post(Call call) {
    const std::lock_guard lock(mu_);
    if (post_) post_(std::move(call));
  }
  void Shut() {
    const std::lock_guard lock(mu_);
    post_ = nullptr;
  }

 private:
  std::mutex mu_;
  std::function<void(Call)> post_;
};

// What a session asks and tells the server that has it.
class SessionOwner {
 public:
  virtual ~SessionOwner() = default;
  // Has the handler called, on the thread it belongs to.
  virtual void Handle(HttpRequest request, HttpReplyPtr reply) = 0;
  virtual std::optional<HttpResponse> Refusal(const HttpRequest& head) = 0;
  virtual HttpResponse ErrorOf(int status, const std::string& message, const HttpRequest& head) = 0;
  // Closes the exchange's outbox where what that calls may wait.
  virtual void Farewell(std::shared_ptr<HttpExchange> exchange) = 0;
  virtual const std::shared_ptr<ByteBudget>& memory() const = 0;  // for bodies
  virtual const std::shared_ptr<UnreadPool>& unread() const = 0;
  virtual std::shared_ptr<IoGate> gate() const = 0;
  virtual bool draining() const = 0;
  virtual const HttpLimits& limits() const = 0;
  virtual std::size_t body_bytes() const = 0;  // in place of those in limits()
  virtual void OnMalformed() = 0;
  virtual void OnNoRoom() = 0;
  virtual void OnTimedOut() = 0;
  virtual void OnTooSlow() = 0;
  virtual bool logs() const = 0;
  virtual void OnEnded(const HttpEnded& ended) = 0;
};

class HttpSession : public std::enable_shared_from_this<HttpSession> {
 public:
  HttpSession(std::shared_ptr<HttpWire> wire, SessionOwner& owner);

  void Start();
  void OnDrain();
  void Close();

 private:
  using SteadyClock = std::chrono::steady_clock;

  bool HasBegun() const;

  // Reading.
  void Expect(std::chrono::milliseconds time);
  void OnReadTimeout();
  void ReadNext();
  void ReadMore();
  void OnRead(bool ok, std::size_t bytes);
  void Parse();
  bool TakeHead();
  void OnWhole();
  void OnMalformed();
  void OnNoRoom();
  void WatchUnread();
  void RefuseBody(HttpResponse response);
  void RefuseAhead(HttpResponse response);
  void SendContinue();

  // Answering.
  void Dispatch();
  void Refuse(HttpResponse response);
  ExchangeFacts FactsOfRequest(bool keep_alive) const;
  void MakeExchange(const ExchangeFacts& facts);
  void Pump();
  void WatchWriting();
  void OnWritten(bool ok);
  void OnExchangeEnded();
  void TellEnd(HttpEnded::How how);
  void LetGo();
  void Linger();

  const std::shared_ptr<HttpWire> wire_;
  SessionOwner& owner_;
  HttpRequestReader reader_;
  bool reading_ = false;  // a read is under way
  bool writing_ = false;  // sending_ is on its way
  bool closed_ = false, lingers_ = false;
  // What is said of the request behind the one under way, which is none or is not handled.
  std::optional<HttpResponse> refused_ahead_;
  bool ahead_ = false;         // reader_ holds the request after the one that is being answered
  bool continue_due_ = false;  // the client waits to be asked for the body
  std::shared_ptr<HttpExchange> exchange_;
  std::unique_ptr<HttpEnded> ended_;  // what is to be told of it
  SteadyClock::time_point asked_at_;
  // While there is an exchange, which may wait for nothing else.
  std::shared_ptr<HttpSession> self_;
  std::string sending_;
  std::int64_t delivered_ = 0;  // when it was last looked at
};

}  // namespace troupe
