// "host:7070" and "[::1]:7070": where a peer listens. Pure: looks up no names.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace troupe {

struct PeerAddress {
  std::string host;  // without the brackets of an IPv6 address
  std::uint16_t port = 0;

  std::string ToString() const;
  // Numbers of this machine's loopback, or the name "localhost".
  bool IsLoopback() const;
  // All of a machine's addresses, as 0.0.0.0 is: listened at, and never dialled.
  bool IsEvery() const;
  // Whether a certificate of these names is this host's; "*.lan" names each host right below lan.
  bool IsNamed(std::span<const std::string> names) const;

  bool operator==(const PeerAddress&) const = default;
};

// kInvalidArgument: it is not a host and a port from 1 to 65535.
Result<PeerAddress> ParsePeerAddress(std::string_view text);

// Where nodes listen unless they are told otherwise.
inline constexpr std::uint16_t kUsualPeerPort = 7070;

// The same with that port behind it, if it names none.
std::string WithUsualPort(std::string_view address, std::uint16_t usual = kUsualPeerPort);

// What gRPC calls the other end of a connection, as people write it:
// "ipv6:%5B::1%5D:7070" is "[::1]:7070".
std::string AddressOfPeerUri(std::string_view uri);

}  // namespace troupe
