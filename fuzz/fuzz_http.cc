// Any bytes sent to a server over a socket, by a client that then says no more: what comes back are
// responses, the connection ends, and the server lives.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/check.h"
#include "server/http/http_server.h"

namespace troupe {
namespace {

HttpServer& Server() {
  static const std::unique_ptr<HttpServer> server =
      HttpServer::Listen({.port = 0,
                          .limits = {.header_bytes = 4096, .body_bytes = 1 << 16},
                          .certificate = "",
                          .key = ""},
                         {.handle =
                              [](HttpRequest request, HttpReplyPtr reply) {
                                if (request.path != "/stream")
                                  return reply->Send({.body = request.body});
                                reply->Begin({});
                                reply->Write(request.method);
                                reply->End();
                              },
                          .refusal = [](const HttpRequest& head) -> std::optional<HttpResponse> {
                            if (head.path != "/no") return std::nullopt;
                            return HttpResponse{.status = 401};
                          },
                          .log = [](const HttpEnded& ended) { TROUPE_CHECK(ended.seconds >= 0); }})
          .value();
  return *server;
}

std::string Exchange(std::string_view sent) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(Server().port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  TROUPE_CHECK(::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  const timeval longest{.tv_sec = 5, .tv_usec = 0};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest);
  const linger at_once{.l_onoff = 1, .l_linger = 0};  // ports are needed again soon
  ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  // The server need not read to the end.
  (void)::send(socket, sent.data(), sent.size(), MSG_NOSIGNAL);
  ::shutdown(socket, SHUT_WR);
  std::string got;
  char bytes[4096];
  ssize_t count = 0;
  while ((count = ::recv(socket, bytes, sizeof bytes, 0)) > 0) {
    got.append(bytes, static_cast<std::size_t>(count));
  }
  const bool timed_out = count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  TROUPE_CHECK(!timed_out);
  ::close(socket);
  return got;
}

}  // namespace
}  // namespace troupe

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string got =
      troupe::Exchange({reinterpret_cast<const char*>(data), std::min<std::size_t>(size, 1 << 16)});
  TROUPE_CHECK(got.empty() || got.starts_with("HTTP/1.1 "));
  return 0;
}
