#include "server/http/http_session.h"

#include <span>
#include <string_view>
#include <utility>

namespace troupe {
namespace {

constexpr std::chrono::seconds kLingerTime(2);
// How often a session that reads nothing looks whether its client has left.
constexpr std::chrono::seconds kLook(1);

// Of a request's head as much as logs tell, and errors that come in place of its answer need: it is
// kept as long as the answer takes.
HttpRequest Shortened(const HttpRequest& head) {
  constexpr std::size_t kOfMethod = 32, kOfPath = 1024, kOfField = 256, kMostKept = 32;
  HttpRequest kept{.method = head.method.substr(0, kOfMethod),
                   .path = head.path.substr(0, kOfPath),
                   .headers = {},
                   .body = {}};
  for (const auto& [name, value] : head.headers) {
    if (name.size() + value.size() > kOfField) continue;
    kept.headers.emplace_back(name, value);
    if (kept.headers.size() == kMostKept) break;
  }
  return kept;
}

}  // namespace

HttpSession::HttpSession(std::shared_ptr<HttpWire> wire, SessionOwner& owner)
    : wire_(std::move(wire)),
      owner_(owner),
      reader_(owner.limits().header_bytes, owner.memory(),
              [this] { return owner_.MakeRoomFor(*this); }) {}

void HttpSession::Start() {
  Expect(owner_.limits().header_time);
  wire_->Greet([self = shared_from_this()](bool ok) {
    if (!ok) return self->Close();
    self->ReadNext();
  });
}

void HttpSession::OnDrain() {
  if (HasBegun()) return;  // its response will say that it is the last
  if (!exchange_) return Close();
  exchange_->CloseAfter();
}

// A request that no exchange is of yet.
bool HttpSession::HasBegun() const { return ahead_ || refused_ahead_ || reader_.begun(); }

std::optional<HttpSession::SteadyClock::time_point> HttpSession::IdleSince() const {
  if (closed_ || lingers_ || exchange_ || reader_.has_head()) return std::nullopt;
  return idle_since_;
}

void HttpSession::Close() {
  if (std::exchange(closed_, true)) return;
  const auto self = std::exchange(self_, nullptr);
  wire_->StopTimer(HttpWire::Timer::kRead);
  wire_->StopTimer(HttpWire::Timer::kWrite);
  if (exchange_) {
    TellEnd(HttpEnded::How::kLeft);
    owner_.Elsewhere(
        [exchange = std::exchange(exchange_, nullptr)] { exchange->outbox().Close(); });
  }
  wire_->Close();
}

// Bytes must have come by then.
void HttpSession::Expect(std::chrono::milliseconds time) {
  wire_->StartTimer(HttpWire::Timer::kRead, time, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->OnReadTimeout();
  });
}

void HttpSession::ExpectBody() {
  came_before_ = came_;
  Expect(owner_.limits().body_time);
}

void HttpSession::OnReadTimeout() {
  if (closed_) return;
  const bool waits_for_body = !lingers_ && !exchange_ && reader_.has_head() && !reader_.done();
  if (waits_for_body && came_ - came_before_ >= owner_.limits().body_progress) return ExpectBody();
  if (lingers_ || !reader_.begun() || exchange_) return Close();
  owner_.OnTimedOut();
  Refuse(owner_.ErrorOf(408, "the request did not come to its end in time", reader_.head()));
}

void HttpSession::ReadNext() {
  reader_.Reset();
  is_refused_ = false;
  if (exchange_) {
    wire_->StopTimer(HttpWire::Timer::kRead);  // whoever waits for an answer may be silent
  } else {
    Expect(asked_before_ ? owner_.limits().idle_time : owner_.limits().header_time);
  }
  Parse();
}

void HttpSession::ReadMore() {
  const std::span<char> room = reader_.Room();
  if (room.empty()) return OnNoRoom();
  reading_ = true;
  wire_->Read(room, [self = shared_from_this()](bool ok, std::size_t bytes) {
    self->reading_ = false;
    self->OnRead(ok, bytes);
  });
}

void HttpSession::OnRead(bool ok, std::size_t bytes) {
  if (!ok) return OnEndOfRequests();
  if (closed_ || lingers_) return;
  if (is_refused_) return reader_.Forget();  // since the read began
  came_ += bytes;
  reader_.Take(bytes);
  Parse();
}

// What has come, which may be less than a header or more than a request.
void HttpSession::Parse() {
  while (!is_refused_) {
    switch (reader_.Next()) {
      case HttpRequestReader::Event::kMore:
        return ReadMore();
      case HttpRequestReader::Event::kBegun:
        asked_before_ = true;
        BeginPart();
        reader_.set_body_limit(owner_.body_bytes());
        if (!exchange_) Expect(owner_.limits().header_time);
        break;
      case HttpRequestReader::Event::kHead:
        if (!TakeHead()) return;
        break;
      case HttpRequestReader::Event::kDone:
        return OnWhole();
      case HttpRequestReader::Event::kMalformed:
        return OnMalformed();
      case HttpRequestReader::Event::kNoRoom:
        return OnNoRoom();
    }
  }
}

// Whether the body is read now.
bool HttpSession::TakeHead() {
  BeginPart();
  if (std::optional<HttpResponse> refusal = owner_.Refusal(reader_.head())) {
    if (exchange_ || !reader_.done()) owner_.OnRefused();
    RefuseBody(*std::move(refusal));
    return false;
  }
  if (!exchange_) ExpectBody();
  if (!reader_.awaits_continue()) return true;
  continue_due_ = true;
  if (exchange_) return true;
  SendContinue();
  return false;
}

void HttpSession::OnWhole() {
  wire_->StopTimer(HttpWire::Timer::kRead);
  if (exchange_) {
    ahead_ = true;  // kept in reader_ until its turn
    WatchUnread();
  } else {
    Dispatch();
  }
}

void HttpSession::OnMalformed() {
  owner_.OnMalformed();
  const HttpRequestReader::Fault& fault = reader_.fault();
  HttpResponse response = owner_.ErrorOf(fault.status, fault.message, reader_.head());
  if (!exchange_) return Refuse(std::move(response));
  RefuseAhead(std::move(response));
}

// After the response that is under way.
void HttpSession::RefuseAhead(HttpResponse response) {
  ahead_ = false;
  ForgetRest();
  refused_ahead_ = std::move(response);
  WatchUnread();
}

// Nothing more is read. A read that is under way still writes to what the reader has, which goes
// when it ends; its room is others' at once.
void HttpSession::ForgetRest() {
  is_refused_ = true;
  reading_ ? reader_.GiveBack() : reader_.Forget();
}

// While nothing is read, as a request waits for the one under way: reading would tell.
void HttpSession::WatchUnread() {
  wire_->StartTimer(HttpWire::Timer::kRead, kLook, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self || self->closed_ || !self->exchange_) return;
    if (self->wire_->HasLeft()) return self->Close();
    self->WatchUnread();
  });
}

void HttpSession::OnNoRoom() {
  owner_.OnNoRoom();
  HttpResponse busy =
      owner_.ErrorOf(503, "other requests hold the memory for bodies; try again", reader_.head());
  busy.headers.emplace_back("Retry-After", "1");
  RefuseBody(std::move(busy));
}

// A request that came to the end of its header, and is not handled.
void HttpSession::RefuseBody(HttpResponse response) {
  wire_->StopTimer(HttpWire::Timer::kRead);
  if (exchange_) return RefuseAhead(std::move(response));
  const bool whole = reader_.done();
  MakeExchange(FactsOfRequest(/*keep_alive=*/whole));
  whole ? reader_.DropBody() : ForgetRest();
  exchange_->Send(std::move(response));
  if (whole) ReadNext();
}

// Reading may be under way: then what comes is parsed there.
void HttpSession::SendContinue() {
  static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  continue_due_ = false;
  writing_ = true;
  wire_->Write(kContinue, [self = shared_from_this(), reads = !reading_](bool ok) {
    self->writing_ = false;
    if (!ok) return self->Close();
    if (reads) self->Parse();
    self->Pump();
  });
}

void HttpSession::Dispatch() {
  MakeExchange(FactsOfRequest(/*keep_alive=*/true));
  HttpRequest request = reader_.TakeRequest();
  request.peer = wire_->Peer();
  owner_.Handle(std::move(request), MakeReply(exchange_));
  ReadNext();
}

// Answers what no handler sees, and closes.
void HttpSession::Refuse(HttpResponse response) {
  MakeExchange({.keep_alive = false,
                .most_unread = owner_.limits().unread_bytes,
                .unread = owner_.unread()});
  ForgetRest();
  exchange_->Send(std::move(response));
}

ExchangeFacts HttpSession::FactsOfRequest(bool keep_alive) const {
  return {.head = reader_.head().method == "HEAD",
          .chunks = reader_.takes_chunks(),
          .keep_alive = keep_alive && reader_.keeps_alive() && !owner_.draining(),
          .most_unread = owner_.limits().unread_bytes,
          .unread = owner_.unread()};
}

// Of the request that reader_ has.
void HttpSession::MakeExchange(const ExchangeFacts& facts) {
  self_ = shared_from_this();
  asked_ = Shortened(reader_.head());
  if (owner_.logs()) {
    ended_ = std::make_unique<HttpEnded>(
        HttpEnded{.peer = wire_->Peer(), .method = asked_->method, .path = asked_->path});
    asked_at_ = SteadyClock::now();
  }
  exchange_ =
      std::make_shared<HttpExchange>(facts, [weak = weak_from_this(), gate = owner_.gate()] {
        gate->Post([weak] {
          if (const auto self = weak.lock()) self->Pump();
        });
      });
}

void HttpSession::Pump() {
  if (closed_ || !exchange_) return;
  if (exchange_->turned_away()) TurnAway();
  if (exchange_->abandoned()) AnswerAbandoned();
  if (exchange_->overflowed()) return LetGo();
  if (writing_) return;
  HttpExchange::ToSend next = exchange_->Next();
  if (next.over) return OnExchangeEnded();
  sending_ = std::move(next.bytes);
  if (sending_.empty()) return;
  writing_ = true;
  WatchWriting();
  wire_->Write(sending_, [self = shared_from_this()](bool ok) { self->OnWritten(ok); });
}

// Nothing of its response was sent, as others have all the room: it may come again.
void HttpSession::TurnAway() {
  owner_.OnTurnedAway();
  HttpResponse busy =
      owner_.ErrorOf(503, "other clients hold the memory for answers; try again", *asked_);
  busy.headers.emplace_back("Retry-After", "1");
  exchange_->SendInstead(std::move(busy));
}

void HttpSession::AnswerAbandoned() {
  exchange_->SendInstead(owner_.ErrorOf(500, "the request was left without an answer", *asked_));
}

// A large piece may take as long as it wants, as long as the client goes on taking it.
void HttpSession::WatchWriting() {
  delivered_ = wire_->Delivered();
  wire_->StartTimer(HttpWire::Timer::kWrite, owner_.limits().write_time, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self || !self->writing_) return;
    if (self->wire_->Delivered() <= self->delivered_) return self->LetGo();
    self->WatchWriting();
  });
}

void HttpSession::OnWritten(bool ok) {
  writing_ = false;
  wire_->StopTimer(HttpWire::Timer::kWrite);
  if (closed_) return;
  if (!ok) return Close();
  if (ended_) ended_->bytes += sending_.size();
  exchange_->outbox().Sent(sending_.size());
  Pump();
}

void HttpSession::OnExchangeEnded() {
  const bool goes_on = exchange_->keep_alive() && (!owner_.draining() || HasBegun());
  if (exchange_->broken()) owner_.OnCutOff();
  TellEnd(exchange_->broken() ? HttpEnded::How::kCutOff : HttpEnded::How::kAnswered);
  const auto self = std::exchange(self_, nullptr);
  exchange_.reset();
  asked_.reset();
  std::string().swap(sending_);  // whoever is silent keeps no room
  idle_since_ = SteadyClock::now();
  if (!goes_on) return Linger();
  if (refused_ahead_) return Refuse(*std::exchange(refused_ahead_, std::nullopt));
  if (std::exchange(ahead_, false)) return Dispatch();
  if (reader_.begun()) {
    reader_.has_head() ? ExpectBody() : Expect(owner_.limits().header_time);
    if (continue_due_) SendContinue();
  } else {
    Expect(owner_.limits().idle_time);
  }
}

// Once an exchange.
void HttpSession::TellEnd(HttpEnded::How how) {
  const std::unique_ptr<HttpEnded> ended = std::move(ended_);
  if (ended == nullptr) return;
  ended->status = exchange_->status();
  ended->seconds = std::chrono::duration<double>(SteadyClock::now() - asked_at_).count();
  ended->how = how;
  exchange_->Tell(*ended);
  owner_.OnEnded(*ended);
}

void HttpSession::LetGo() {
  if (exchange_) TellEnd(HttpEnded::How::kTooSlow);
  owner_.OnTooSlow();
  Close();
}

// Closing with bytes unread would reset the connection, and the client might lose the response:
// what still comes is read and thrown away for a moment.
void HttpSession::Linger() {
  lingers_ = true;
  wire_->Linger([self = shared_from_this()] { self->Close(); });
  Expect(kLingerTime);
}

}  // namespace troupe
