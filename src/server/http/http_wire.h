// One connection as a session uses it: its bytes, its timers, who is at the other end. Sockets, TLS
// and the library behind them are http_socket.h's. All of it on the I/O thread; what is asked for
// calls back later, from that thread, but where it says otherwise.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace troupe {

class HttpWire {
 public:
  enum class Timer { kRead, kWrite };
  using OnDone = std::function<void(bool ok)>;
  using OnBytes = std::function<void(bool ok, std::size_t bytes)>;

  virtual ~HttpWire() = default;

  // The handshake of TLS; a connection without it is done at once, within the call.
  virtual void Greet(OnDone done) = 0;
  // The next bytes that come, at least one. `to` must stay until then.
  virtual void Read(std::span<char> to, OnBytes done) = 0;
  // All of the bytes, which must stay until then. One write at a time.
  virtual void Write(std::string_view bytes, OnDone done) = 0;
  // Sends nothing more, and throws away what comes until the client has ended, too, or Close.
  virtual void Linger(std::function<void()> ended) = 0;
  // At once; what is under way fails.
  virtual void Close() = 0;

  // Calls after that time unless the timer is stopped, or started again, before.
  virtual void StartTimer(Timer timer, std::chrono::milliseconds time,
                          std::function<void()> call) = 0;
  virtual void StopTimer(Timer timer) = 0;

  // Bytes that the other end's system has taken, more or less: it grows while it takes any.
  virtual std::int64_t Delivered() = 0;
  // Whether the other end sends nothing more, however much of it is still unread. At once.
  virtual bool HasLeft() = 0;
  // Whether it may still read, as far as the system knows, though it sends nothing more. At once.
  virtual bool MayRead() = 0;
  virtual std::string Peer() = 0;  // "127.0.0.1:53124"; empty: it has left
};

}  // namespace troupe
