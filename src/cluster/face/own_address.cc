#include "cluster/face/own_address.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/fd.h"

namespace troupe {

namespace {

using FoundAddresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

// With that port, for datagrams.
Result<FoundAddresses> LookUp(const PeerAddress& address, std::uint16_t port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (const int error =
          ::getaddrinfo(address.host.c_str(), std::to_string(port).c_str(), &hints, &found);
      error != 0) {
    return Error(Code::kUnavailable, "{}: {}", address.ToString(), ::gai_strerror(error));
  }
  return FoundAddresses(found, &::freeaddrinfo);
}

bool IsLoopback(const addrinfo& one) {
  if (one.ai_family == AF_INET) {
    sockaddr_in v4 = {};
    std::memcpy(&v4, one.ai_addr, sizeof v4);
    return ntohl(v4.sin_addr.s_addr) >> 24 == 127;
  }
  sockaddr_in6 v6 = {};
  if (one.ai_family != AF_INET6) return false;
  std::memcpy(&v6, one.ai_addr, sizeof v6);
  return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}

}  // namespace

// Only an address of this machine can be bound to.
Result<bool> IsOwnHost(const PeerAddress& address) {
  TROUPE_ASSIGN_OR_RETURN(const FoundAddresses found, LookUp(address, /*port=*/0));
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
    const UniqueFd socket(::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, 0));
    if (socket.valid() && ::bind(socket.get(), one->ai_addr, one->ai_addrlen) == 0) return true;
  }
  return false;
}

Result<bool> IsLoopbackHere(const PeerAddress& address) {
  TROUPE_ASSIGN_OR_RETURN(const FoundAddresses found, LookUp(address, /*port=*/0));
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
    if (!IsLoopback(*one)) return false;
  }
  return true;
}

// A datagram socket that is connected has its own address, though nothing was sent.
Result<std::string> OwnHostTowards(const PeerAddress& other) {
  TROUPE_ASSIGN_OR_RETURN(const FoundAddresses found, LookUp(other, other.port));
  int problem = 0;
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
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
