// A connection (http_wire.h) over a socket of Boost.Asio, plain or with TLS. Included by
// http_server.cc alone.
#pragma once

#include <fmt/core.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>

#include <array>
#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "server/http/http_wire.h"

namespace troupe::http_internal {

namespace asio = boost::asio;
using Tcp = asio::ip::tcp;
using ErrorCode = boost::system::error_code;
using TlsSocket = asio::ssl::stream<Tcp::socket>;

template <typename Stream>
class SocketWire final : public HttpWire, public std::enable_shared_from_this<SocketWire<Stream>> {
 public:
  explicit SocketWire(Stream stream)
      : stream_(std::move(stream)),
        read_timer_(stream_.get_executor()),
        write_timer_(stream_.get_executor()) {}

  void Greet(OnDone done) override {
    if constexpr (kTls) {
      stream_.async_handshake(asio::ssl::stream_base::server,
                              [done = std::move(done)](ErrorCode error) { done(!error); });
    } else {
      done(true);
    }
  }

  void Read(std::span<char> to, OnBytes done) override {
    stream_.async_read_some(
        asio::buffer(to.data(), to.size()),
        [done = std::move(done)](ErrorCode error, std::size_t bytes) { done(!error, bytes); });
  }

  void Write(std::string_view bytes, OnDone done) override {
    const auto begun = taken_;
    const auto go_on = [this, begun](ErrorCode error, std::size_t so_far) {
      taken_ = begun + static_cast<std::int64_t>(so_far);
      return asio::transfer_all()(error, so_far);
    };
    asio::async_write(stream_, asio::buffer(bytes.data(), bytes.size()), go_on,
                      [done = std::move(done)](ErrorCode error, std::size_t) { done(!error); });
  }

  // A client of TLS takes an end without close_notify for a cut.
  void Linger(std::function<void()> ended) override {
    if constexpr (kTls) {
      // As if the other end had said so, too: it is not waited for.
      SSL_set_shutdown(stream_.native_handle(), SSL_RECEIVED_SHUTDOWN);
      stream_.async_shutdown(
          [this, ended = std::move(ended)](ErrorCode) mutable { EndSending(std::move(ended)); });
    } else {
      EndSending(std::move(ended));
    }
  }

  void Close() override {
    ErrorCode ignored;
    Socket().shutdown(Tcp::socket::shutdown_both, ignored);
    Socket().close(ignored);
  }

  void StartTimer(Timer timer, std::chrono::milliseconds time,
                  std::function<void()> call) override {
    asio::steady_timer& one = TimerOf(timer);
    one.expires_after(time);
    one.async_wait([weak = this->weak_from_this(), timer, call = std::move(call)](ErrorCode error) {
      const auto self = weak.lock();
      // It may have been started again when this call was already on its way.
      if (!error && self &&
          self->TimerOf(timer).expiry() <= asio::steady_timer::clock_type::now()) {
        call();
      }
    });
  }
  void StopTimer(Timer timer) override { TimerOf(timer).cancel(); }

  std::int64_t Delivered() override {
    int waiting = 0;  // in the system, not acknowledged; TLS adds a little of its own
    ::ioctl(Socket().native_handle(), SIOCOUTQ, &waiting);
    return taken_ - waiting;
  }
  bool HasLeft() override {
    pollfd socket{.fd = Socket().native_handle(), .events = POLLRDHUP, .revents = 0};
    return ::poll(&socket, 1, /*timeout=*/0) > 0;
  }

  // Of TLS hardly anybody ends one direction alone.
  bool MayRead() override {
    if constexpr (kTls) return false;
    pollfd socket{.fd = Socket().native_handle(), .events = 0, .revents = 0};
    return ::poll(&socket, 1, /*timeout=*/0) == 0;  // neither reset nor closed on both sides
  }

  std::string Peer() override {
    ErrorCode error;
    const Tcp::endpoint peer = Socket().remote_endpoint(error);
    if (error) return {};
    const bool v6 = peer.address().is_v6();
    return fmt::format("{}{}{}:{}", v6 ? "[" : "", peer.address().to_string(), v6 ? "]" : "",
                       peer.port());
  }

 private:
  static constexpr bool kTls = std::is_same_v<Stream, TlsSocket>;

  Tcp::socket& Socket() {
    if constexpr (kTls) {
      return stream_.next_layer();
    } else {
      return stream_;
    }
  }
  asio::steady_timer& TimerOf(Timer timer) {
    return timer == Timer::kRead ? read_timer_ : write_timer_;
  }

  void EndSending(std::function<void()> ended) {
    ErrorCode ignored;
    Socket().shutdown(Tcp::socket::shutdown_send, ignored);
    // A read that was under way may take the bytes that ThrowAway is told of.
    Socket().non_blocking(true, ignored);
    ThrowAway(std::move(ended));
  }

  // `ended` keeps this connection.
  void ThrowAway(std::function<void()> ended) {
    Socket().async_wait(Tcp::socket::wait_read,
                        [this, ended = std::move(ended)](ErrorCode error) mutable {
                          std::array<char, 4096> bytes;
                          if (!error) Socket().read_some(asio::buffer(bytes), error);
                          if (error && error != asio::error::would_block) return ended();
                          ThrowAway(std::move(ended));
                        });
  }

  Stream stream_;
  std::int64_t taken_ = 0;  // by the system, of what was to be written
  asio::steady_timer read_timer_, write_timer_;
};

}  // namespace troupe::http_internal
