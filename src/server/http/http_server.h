// An HTTP/1.1 server on one I/O thread. Handlers of bodies run on others, so that the reading of a
// long request holds up no stream: small bodies on one, and larger ones on another, so that it
// holds up no short request either. What is called when clients leave has a thread, too. A client
// that reads or writes slowly holds up no other: every wait has a time, every buffer a size. What
// happens on a connection is http_session.h's; sockets are Boost.Asio's, behind http_server.cc.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "server/http/http_certificate.h"
#include "server/http/http_reply.h"

namespace troupe {

struct HttpLimits {
  std::size_t header_bytes = 32 * 1024;
  std::size_t body_bytes = 16 << 20;
  // Beyond them, whoever has been idle longest is closed for the next.
  std::size_t connections = 1024;
  // That all bodies may take, each what has come of it; one that finds no room is answered with
  // 503.
  std::size_t all_body_bytes = 20 << 20;
  // That all clients may have to read; then whoever has most is let go (unread_pool.h).
  std::size_t all_unread_bytes = 12 << 20;
  // That one client may have to read before it is let go.
  std::size_t unread_bytes = 1 << 20;
  // From a request's first byte, and to the first byte of a connection.
  std::chrono::milliseconds header_time{10'000};
  // From the end of its header, and again each time that so much of the body has come meanwhile.
  std::chrono::milliseconds body_time{60'000};
  std::size_t body_progress = 64 * 1024;
  // Where requests find no room for their bytes, or connections no place, the request that comes
  // slowest is let go of, if it is slower than body_pace (bytes a second) and older than
  // body_start.
  double body_pace = 64 * 1024;
  std::chrono::milliseconds body_start{2'000};
  std::chrono::milliseconds idle_time{120'000};  // between requests of a connection
  std::chrono::milliseconds write_time{30'000};  // in which a client must take something
};

struct HttpServerOptions {
  std::string host = "127.0.0.1";  // a name: all its addresses that are this machine's
  std::uint16_t port = 8080;       // 0: any that is free
  HttpLimits limits;
  // Paths of PEM files; both or none.
  std::string certificate, key;
};

struct HttpCounters {
  std::uint64_t accepted = 0;
  std::uint64_t requests = 0;
  std::uint64_t malformed = 0;  // answered with 4xx before any handler saw them
  std::uint64_t refused = 0;    // by the service before their bodies were read, and closed
  std::uint64_t no_room = 0;    // whose bodies found no memory
  std::uint64_t timed_out = 0;
  std::uint64_t slow_bodies = 0;  // let go of, with headers and all, as others needed their room
  std::uint64_t too_slow = 0;     // let go with as much unread as they may have
  std::uint64_t made_way = 0;     // closed while idle or slow, for those that came
  std::uint64_t turned_away = 0;  // answers in whose place 503 was sent, as others were unread
  std::uint64_t cut_off = 0;      // responses that were broken off by an error
  std::uint64_t overtook = 0;     // small bodies that were handled while a larger one was
  std::size_t connections = 0;    // now
  // Of the certificate that connections are shown now, in seconds since 1970; 0: there is none.
  std::int64_t certificate_expires = 0;
};

class HttpServer {
 public:
  // Listens, and serves from then on. kUnavailable: the address is taken, or not this machine's.
  // kInvalidArgument: certificate and key are not what they should be.
  static Result<std::unique_ptr<HttpServer>> Listen(const HttpServerOptions& options,
                                                    HttpService service);
  // Ends everything at once.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::uint16_t port() const;
  // "http://127.0.0.1:8080"
  std::string Address() const;
  HttpCounters counters() const;
  // In place of HttpLimits::body_bytes, for requests that begin from now on.
  void set_body_bytes(std::size_t most);
  // What connections that come now are shown; none: they are plain.
  std::optional<HttpCertificate> certificate() const;
  // For connections that come from now on. REQUIRES: there is one.
  void set_certificate(const HttpCertificate& next);

  // Accepts nobody any more, and closes each connection as soon as its response is out, or at once
  // if no request of it has begun to come. True once none is left, or false after that time.
  bool Drain(std::chrono::milliseconds longest);

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe
