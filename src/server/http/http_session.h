// One connection on the I/O thread: reads requests one ahead of the response that is under way, so
// that a client who leaves is noticed, and sends what exchanges put into their outboxes. Included
// by http_server.cc alone; everything here runs on its I/O thread.
#pragma once

#include <array>
#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "server/http/http_exchange.h"
#include "server/http/http_server.h"

namespace troupe::http_internal {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using Tcp = asio::ip::tcp;
using ErrorCode = boost::system::error_code;

// Lets threads that answer reach the I/O thread as long as there is one: replies may outlive it.
class IoGate {
 public:
  explicit IoGate(asio::io_context& io) : io_(&io) {}

  template <typename Call>
  void Post(Call call) {
    const std::lock_guard lock(mu_);
    if (io_ != nullptr) asio::post(*io_, std::move(call));
  }
  void Shut() {
    const std::lock_guard lock(mu_);
    io_ = nullptr;
  }

 private:
  std::mutex mu_;
  asio::io_context* io_;
};

// What a session tells the server that has it.
class SessionOwner {
 public:
  virtual ~SessionOwner() = default;
  // Has the handler called, on the thread it belongs to.
  virtual void Handle(HttpRequest request, HttpReplyPtr reply) = 0;
  virtual std::optional<HttpResponse> Refusal(const HttpRequest& head) = 0;
  virtual HttpResponse ErrorOf(int status, const std::string& message, const std::string& path) = 0;
  // Closes the exchange's outbox where what that calls may wait.
  virtual void Farewell(std::shared_ptr<HttpExchange> exchange) = 0;
  virtual const std::shared_ptr<ByteBudget>& memory() const = 0;
  virtual std::shared_ptr<IoGate> gate() const = 0;
  virtual bool draining() const = 0;
  virtual const HttpLimits& limits() const = 0;
  virtual void OnMalformed() = 0;
  virtual void OnNoRoom() = 0;
  virtual void OnTimedOut() = 0;
  virtual void OnTooSlow() = 0;
};

class Session {
 public:
  virtual ~Session() = default;
  virtual void Start() = 0;
  virtual void OnDrain() = 0;
  virtual void Close() = 0;
};

template <typename Stream>
class SessionOn final : public Session, public std::enable_shared_from_this<SessionOn<Stream>> {
 public:
  SessionOn(Stream stream, SessionOwner& owner)
      : stream_(std::move(stream)),
        owner_(owner),
        read_timer_(stream_.get_executor()),
        write_timer_(stream_.get_executor()) {}
  void Start() override {
    if constexpr (kTls) {
      Expect(owner_.limits().header_time);
      stream_.async_handshake(asio::ssl::stream_base::server,
                              [self = this->shared_from_this()](ErrorCode error) {
                                if (error) return self->Close();
                                self->ReadNext();
                              });
    } else {
      ReadNext();
    }
  }

  void OnDrain() override {
    if (!exchange_) return Close();
    exchange_->CloseAfter();
  }

  void Close() override {
    if (std::exchange(closed_, true)) return;
    const auto self = std::exchange(self_, nullptr);
    read_timer_.cancel();
    write_timer_.cancel();
    if (exchange_) owner_.Farewell(std::exchange(exchange_, nullptr));
    ErrorCode ignored;
    Socket().shutdown(Tcp::socket::shutdown_both, ignored);
    Socket().close(ignored);
  }

 private:
  static constexpr bool kTls = !std::is_same_v<Stream, Tcp::socket>;

  auto& Socket() { return beast::get_lowest_layer(stream_); }

  // Bytes must have come by then.
  void Expect(std::chrono::milliseconds time) {
    read_timer_.expires_after(time);
    read_timer_.async_wait([weak = this->weak_from_this()](ErrorCode error) {
      const auto self = weak.lock();
      if (!error && self && self->read_timer_.expiry() <= asio::steady_timer::clock_type::now()) {
        self->OnReadTimeout();
      }
    });
  }

  void OnReadTimeout() {
    if (closed_) return;
    if (!in_header_ || exchange_) return Close();
    owner_.OnTimedOut();
    Refuse(owner_.ErrorOf(408, "the request did not come to its end in time", head_.path));
  }

  void ReadNext() {
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(owner_.limits().header_bytes));
    parser_->body_limit(owner_.limits().body_bytes);
    parser_->eager(true);
    in_header_ = in_body_ = false;
    if (buffer_.size() == 0) {  // who is silent needs none
      buffer_ = beast::flat_buffer();
      buffer_memory_ = nullptr;
    }
    head_ = {};
    body_memory_ = nullptr;
    if (exchange_) {
      read_timer_.cancel();  // whoever waits for an answer may be silent
    } else {
      Expect(owner_.limits().idle_time);
    }
    Parse();
  }

  void ReadMore() {
    constexpr std::size_t kAtOnce = 4096, kOfBodies = 64 * 1024;
    // What the parser leaves is a line that has no end yet: of the header, or between chunks.
    if (buffer_.size() > owner_.limits().header_bytes)
      return OnReadError(http::error::header_limit);
    const std::size_t next = in_body_ ? kOfBodies : kAtOnce;
    if (buffer_.size() + next > kAtOnce) {
      if (buffer_memory_ == nullptr) buffer_memory_ = std::make_unique<HeldBytes>(owner_.memory());
      if (!buffer_memory_->GrowTo(buffer_.size() + next)) {
        owner_.OnNoRoom();
        return Close();
      }
    }
    reading_ = true;
    stream_.async_read_some(buffer_.prepare(next),
                            [self = this->shared_from_this()](ErrorCode error, std::size_t bytes) {
                              self->reading_ = false;
                              self->OnRead(error, bytes);
                            });
  }

  void OnRead(ErrorCode error, std::size_t bytes) {
    if (closed_ || lingers_) return error ? Close() : void();
    if (error) return Close();  // the client has left
    buffer_.commit(bytes);
    Parse();
  }

  // What has come, which may be less than a header or more than a request.
  void Parse() {
    while (!parser_->is_done()) {
      if (!in_header_) SkipBlankLines();
      if (buffer_.size() == 0) return ReadMore();
      if (!std::exchange(in_header_, true) && !exchange_) Expect(owner_.limits().header_time);
      ErrorCode error;
      const std::size_t used = parser_->put(buffer_.data(), error);
      buffer_.consume(used);
      if (error && error != http::error::need_more) return OnReadError(error);
      if (parser_->is_header_done() && !std::exchange(in_body_, true)) {
        ReadHead();
        if (std::optional<HttpResponse> refusal = owner_.Refusal(head_)) {
          return RefuseBody(*std::move(refusal));
        }
        if (!exchange_) Expect(owner_.limits().body_time);
        if (!parser_->is_done() &&
            beast::iequals(parser_->get()[http::field::expect], "100-continue")) {
          continue_due_ = true;
          if (!exchange_) return SendContinue();
        }
      }
      if (in_body_ && !HoldsBody()) {
        owner_.OnNoRoom();
        HttpResponse busy =
            owner_.ErrorOf(503, "other requests hold the memory for bodies; try again", head_.path);
        busy.headers.emplace_back("Retry-After", "1");
        return RefuseBody(std::move(busy));
      }
      if (error || used == 0) return ReadMore();
    }
    read_timer_.cancel();
    if (exchange_) {
      ahead_ = true;  // kept in parser_ until its turn
    } else {
      Dispatch();
    }
  }

  void ReadHead() {
    const http::request<http::string_body>& message = parser_->get();
    const std::string_view target(message.target().data(), message.target().size());
    head_ = {.method = std::string(message.method_string()),
             .path = DecodePercent(target.substr(0, target.find('?'))),
             .headers = {},
             .body = {}};
    for (const auto& field : message) {
      head_.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
    }
  }

  // Whether there is memory for the body as far as it is known by now.
  bool HoldsBody() {
    const std::size_t known =
        std::max<std::size_t>(parser_->content_length().value_or(0), parser_->get().body().size());
    if (known == 0 || known > owner_.limits().body_bytes) return true;  // nothing is kept of it
    if (body_memory_ == nullptr) body_memory_ = std::make_shared<HeldBytes>(owner_.memory());
    return body_memory_->GrowTo(known);
  }

  // A request that came to the end of its header, and is not handled.
  void RefuseBody(HttpResponse response) {
    if (exchange_) {
      refused_ahead_ = std::move(response);  // after the response that is under way
      read_timer_.cancel();
      return;
    }
    read_timer_.cancel();
    const bool whole = parser_->is_done();
    MakeExchange(FactsOf(parser_->get(), /*keep_alive=*/whole));
    parser_->get().body() = {};
    body_memory_ = nullptr;
    exchange_->Send(std::move(response));
    if (whole) ReadNext();
  }

  // That some clients send after a body (RFC 9112, 2.2).
  void SkipBlankLines() {
    const auto bytes = buffer_.data();
    const char* const begin = static_cast<const char*>(bytes.data());
    std::size_t blank = 0;
    while (blank < bytes.size() && (begin[blank] == '\r' || begin[blank] == '\n')) ++blank;
    buffer_.consume(blank);
  }

  void OnReadError(ErrorCode error) {
    if (head_.path.empty()) ReadHead();
    owner_.OnMalformed();
    HttpResponse response = ResponseTo(error);
    if (!exchange_) return Refuse(std::move(response));
    refused_ahead_ = std::move(response);  // after the response that is under way
    read_timer_.cancel();
  }

  HttpResponse ResponseTo(ErrorCode error) {
    if (error == http::error::header_limit) {
      return owner_.ErrorOf(431, "the header is too long", head_.path);
    }
    if (error == http::error::body_limit) {
      return owner_.ErrorOf(
          413, fmt::format("the body has more than {} bytes", owner_.limits().body_bytes),
          head_.path);
    }
    return owner_.ErrorOf(400, fmt::format("not a request of HTTP/1.1: {}", error.message()),
                          head_.path);
  }

  // Reading may be under way: then what comes is parsed there.
  void SendContinue() {
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    continue_due_ = false;
    writing_ = true;
    asio::async_write(
        stream_, asio::buffer(kContinue),
        [self = this->shared_from_this(), reads = !reading_](ErrorCode error, std::size_t) {
          self->writing_ = false;
          if (error) return self->Close();
          if (reads) self->Parse();
          self->Pump();
        });
  }

  // Answers what no handler sees, and closes.
  void Refuse(HttpResponse response) {
    MakeExchange({.keep_alive = false,
                  .most_unread = owner_.limits().unread_bytes,
                  .memory = owner_.memory()});
    exchange_->Send(std::move(response));
  }

  ExchangeFacts FactsOf(const http::request<http::string_body>& message, bool keep_alive) const {
    return {.head = message.method() == http::verb::head,
            .chunks = message.version() >= 11,
            .keep_alive = keep_alive && message.keep_alive() && !owner_.draining(),
            .most_unread = owner_.limits().unread_bytes,
            .memory = owner_.memory()};
  }

  void MakeExchange(const ExchangeFacts& facts) {
    self_ = this->shared_from_this();
    exchange_ = std::make_shared<HttpExchange>(
        facts, [weak = this->weak_from_this(), gate = owner_.gate()] {
          gate->Post([weak] {
            if (const auto self = weak.lock()) self->Pump();
          });
        });
  }

  void Dispatch() {
    MakeExchange(FactsOf(parser_->get(), /*keep_alive=*/true));
    HttpRequest request = std::move(head_);
    request.body = std::move(parser_->get().body());
    request.held = std::move(body_memory_);
    owner_.Handle(std::move(request), MakeReply(exchange_));
    ReadNext();
  }

  void Pump() {
    if (closed_ || !exchange_) return;
    if (exchange_->overflowed()) {
      owner_.OnTooSlow();
      return Close();
    }
    if (writing_) return;
    sending_ = exchange_->outbox().Take();
    if (sending_.empty()) {
      if (exchange_->ended()) OnExchangeEnded();
      return;
    }
    writing_ = true;
    write_timer_.expires_after(owner_.limits().write_time);
    write_timer_.async_wait([weak = this->weak_from_this()](ErrorCode error) {
      const auto self = weak.lock();
      if (error || !self || !self->writing_) return;
      self->owner_.OnTooSlow();
      self->Close();
    });
    asio::async_write(stream_, asio::buffer(sending_),
                      [self = this->shared_from_this()](ErrorCode error, std::size_t) {
                        self->writing_ = false;
                        self->write_timer_.cancel();
                        if (self->closed_) return;
                        if (error) return self->Close();
                        self->exchange_->outbox().Sent(self->sending_.size());
                        self->Pump();
                      });
  }

  void OnExchangeEnded() {
    const bool goes_on = exchange_->keep_alive() && !owner_.draining();
    const auto self = std::exchange(self_, nullptr);
    exchange_.reset();
    sending_ = {};
    if (!goes_on) return Linger();
    if (refused_ahead_) return Refuse(*std::exchange(refused_ahead_, std::nullopt));
    if (std::exchange(ahead_, false)) return Dispatch();
    if (in_header_) {
      Expect(in_body_ ? owner_.limits().body_time : owner_.limits().header_time);
      if (continue_due_) SendContinue();
    } else {
      Expect(owner_.limits().idle_time);
    }
  }

  // Closing with bytes unread would reset the connection, and the client might lose the response:
  // what still comes is read and thrown away for a moment.
  void Linger() {
    lingers_ = true;
    ErrorCode ignored;
    Socket().shutdown(Tcp::socket::shutdown_send, ignored);
    read_timer_.expires_after(std::chrono::seconds(2));
    read_timer_.async_wait([weak = this->weak_from_this()](ErrorCode error) {
      const auto self = weak.lock();
      if (!error && self) self->Close();
    });
    ThrowAway();
  }

  void ThrowAway() {
    Socket().async_wait(Tcp::socket::wait_read, [self = this->shared_from_this()](ErrorCode error) {
      std::array<char, 4096> bytes;
      ErrorCode failed = error;
      if (!failed && !self->closed_) self->Socket().read_some(asio::buffer(bytes), failed);
      if (failed) return self->Close();
      if (!self->closed_) self->ThrowAway();
    });
  }

  Stream stream_;
  SessionOwner& owner_;
  asio::steady_timer read_timer_, write_timer_;
  beast::flat_buffer buffer_;
  std::unique_ptr<HeldBytes> buffer_memory_;  // what is beyond its first bytes
  std::optional<http::request_parser<http::string_body>> parser_;
  bool reading_ = false;  // a read is under way
  bool in_header_ = false, in_body_ = false;
  HttpRequest head_;                        // of the request that parser_ reads
  std::shared_ptr<HeldBytes> body_memory_;  // and its body's
  // What is said of the request behind the one under way, which is none or is not handled.
  std::optional<HttpResponse> refused_ahead_;
  bool ahead_ = false;         // parser_ holds the request after the one that is being answered
  bool continue_due_ = false;  // the client waits to be asked for the body
  bool writing_ = false;       // sending_ is on its way
  bool closed_ = false, lingers_ = false;
  std::shared_ptr<HttpExchange> exchange_;
  std::shared_ptr<SessionOn> self_;  // while there is an exchange, which may wait for nothing else
  std::string sending_;
};

}  // namespace troupe::http_internal
