// One connection on the I/O thread: reads requests one ahead of the response that is under way, and
// then looks every second whether the client has left. One that ends its sending alone still gets
// its answer, as far as it can be told from one that has left. Sends what exchanges put into their
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
#include <string_view>
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

class HttpSession;

// What a session asks and tells the server that has it.
class SessionOwner {
 public:
  virtual ~SessionOwner() = default;
  // Has the handler called, on the thread it belongs to.
  virtual void Handle(HttpRequest request, HttpReplyPtr reply) = 0;
  virtual std::optional<HttpResponse> Refusal(const HttpRequest& head) = 0;
  virtual HttpResponse ErrorOf(int status, const std::string& message, const HttpRequest& head) = 0;
  // Has it called where it may wait.
  virtual void Elsewhere(std::function<void()> call) = 0;
  virtual const std::shared_ptr<ByteBudget>& memory() const = 0;  // for bodies
  // Lets go of the request that comes slowest of those that hold room. False: none is slow, or it
  // is that one's own.
  virtual bool MakeRoomFor(const HttpSession& session) = 0;
  virtual const std::shared_ptr<UnreadPool>& unread() const = 0;
  virtual std::shared_ptr<IoGate> gate() const = 0;
  virtual bool draining() const = 0;
  virtual const HttpLimits& limits() const = 0;
  virtual std::size_t body_bytes() const = 0;  // in place of those in limits()
  virtual void OnMalformed() = 0;
  virtual void OnRefused() = 0;  // and the connection ends
  virtual void OnNoRoom() = 0;
  virtual void OnTimedOut() = 0;
  virtual void OnTooSlow() = 0;
  virtual void OnTurnedAway() = 0;
  virtual void OnCutOff() = 0;
  virtual bool logs() const = 0;
  virtual void OnEnded(const HttpEnded& ended) = 0;
};

class HttpSession : public std::enable_shared_from_this<HttpSession> {
 public:
  HttpSession(std::shared_ptr<HttpWire> wire, SessionOwner& owner);

  void Start();
  void OnDrain();
  void Close();

  using SteadyClock = std::chrono::steady_clock;
  // Since when it waits for the header of a request, answers none and may be closed for another.
  std::optional<SteadyClock::time_point> IdleSince() const;
  // Bytes a second of the request that comes, since its beginning or the end of its header; none of
  // one that waits behind an answer. Absent: none comes, or it has only begun to.
  std::optional<double> Pace() const;
  // More of the memory for bodies than every request may have.
  bool HoldsRoom() const;
  bool Answers() const { return exchange_ != nullptr; }
  // Lets go of that request, as others need its room; not of an answer before it.
  void GiveWay();
  // Ends as others need the connection; `told`: whoever has begun a request is answered first.
  void MakeWay(bool told);
  bool Leaves() const { return lingers_ || is_refused_; }  // it only says why

 private:
  bool HasBegun() const;

  // Reading.
  void BeginPart();
  void Expect(std::chrono::milliseconds time);
  void ExpectBody();
  void OnReadTimeout();
  void ReadNext();
  void ReadMore();
  void OnRead(bool ok, std::size_t bytes);
  void OnEndOfRequests();
  void Doubt(unsigned looks);
  void WatchReset(unsigned looks);
  void Parse();
  bool TakeHead();
  void OnWhole();
  void OnMalformed();
  void OnNoRoom();
  void WatchUnread();
  void RefuseBody(HttpResponse response);
  HttpResponse TooLate(std::string_view needed) const;
  void RefuseAhead(HttpResponse response);
  void ForgetRest();
  void SendContinue();

  // Answering.
  void Dispatch();
  void Refuse(HttpResponse response);
  ExchangeFacts FactsOfRequest(bool keep_alive) const;
  void MakeExchange(const ExchangeFacts& facts);
  void Pump();
  void TurnAway();
  void AnswerAbandoned();
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
  bool is_refused_ = false;  // the request that reader_ has: no more of it is wanted
  // What is said of the request behind the one under way, which is none or is not handled.
  std::optional<HttpResponse> refused_ahead_;
  std::uint64_t came_ = 0, came_before_ = 0;  // bytes: all, and when a body was last waited for
  // The same to where Pace counts from: the request's first bytes, and then the end of its header.
  std::uint64_t came_to_part_ = 0;
  SteadyClock::time_point part_at_;  // and when that was
  bool asked_before_ = false;        // a request of it has begun to come
  bool ahead_ = false;         // reader_ holds the request after the one that is being answered
  bool continue_due_ = false;  // the client waits to be asked for the body
  std::shared_ptr<HttpExchange> exchange_;
  std::unique_ptr<HttpEnded> ended_;  // what is to be told of it
  SteadyClock::time_point asked_at_;
  SteadyClock::time_point idle_since_ = SteadyClock::now();
  std::optional<HttpRequest> asked_;  // what exchange_ answers, without its body
  // While there is an exchange, which may wait for nothing else.
  std::shared_ptr<HttpSession> self_;
  std::string sending_;
  std::int64_t delivered_ = 0;  // when it was last looked at
};

}  // namespace troupe
