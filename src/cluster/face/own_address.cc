#include "cluster/face/own_address.h"

#include <netdb.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <memory>

#include "base/fd.h"

namespace troupe {

// A datagram socket that is connected has its own address, though nothing was sent.
Result<std::string> OwnHostTowards(const PeerAddress& other) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(other.port);
  if (const int error = ::getaddrinfo(other.host.c_str(), port.c_str(), &hints, &found);
      error != 0) {
    return Error(Code::kUnavailable, "{}: {}", other.ToString(), ::gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(found, &::freeaddrinfo);
  int problem = 0;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    const UniqueFd socket(::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, 0));
    sockaddr_storage own = {};
    socklen_t size = sizeof(own);
    std::array<char, NI_MAXHOST> host = {};
    if (socket.valid() && ::connect(socket.get(), one->ai_addr, one->ai_addrlen) == 0 &&
        ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &size) == 0 &&
        ::getnameinfo(reinterpret_cast<sockaddr*>(&own), size, host.data(), host.size(), nullptr, 0,
                      NI_NUMERICHOST) == 0) {
      return std::string(host.data());
    }
    problem = errno;
  }
  return Status(Code::kUnavailable, ErrnoStatus(problem, other.ToString()).message());
}

}  // namespace troupe
