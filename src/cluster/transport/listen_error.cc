#include "cluster/transport/listen_error.h"

#include <netdb.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <string>

#include "base/fd.h"
#include "cluster/face/peer_address.h"

namespace troupe {

Status WhyNotListening(const TransportOptions& options) {
  const PeerAddress address{.host = options.host, .port = options.port};
  const std::string name = address.ToString();
  const addrinfo wanted{
      .ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
  addrinfo* list = nullptr;
  if (const int error = ::getaddrinfo(options.host.c_str(), std::to_string(options.port).c_str(),
                                      &wanted, &list)) {
    return Error(Code::kUnavailable, "{}: {}", name, ::gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> found(list, &::freeaddrinfo);
  for (const addrinfo* each = list; each != nullptr; each = each->ai_next) {
    const UniqueFd socket(::socket(each->ai_family, each->ai_socktype | SOCK_CLOEXEC, 0));
    const int yes = 1;
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (!socket.valid() || ::bind(socket.get(), each->ai_addr, each->ai_addrlen) != 0) {
      return Status(Code::kUnavailable, ErrnoStatus(errno, name).message());
    }
  }
  if (!options.tls.any()) return Error(Code::kUnavailable, "{}: gRPC cannot listen", name);
  return InvalidArgument("{}, {}, {}: not PEM files of an authority, a certificate and its key",
                         options.tls.authority, options.tls.certificate, options.tls.key);
}

}  // namespace troupe
