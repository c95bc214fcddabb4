#include "cluster/face/peer_address.h"

#include <arpa/inet.h>
#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <optional>

namespace troupe {
namespace {

bool IsNameOrNumbers(std::string_view host) {
  return !host.empty() && std::ranges::all_of(host, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_';
  });
}

bool IsV6(std::string_view host) {
  in6_addr bytes;
  return ::inet_pton(AF_INET6, std::string(host).c_str(), &bytes) == 1;
}

// However they are written.
std::optional<in6_addr> NumbersOf(std::string_view host) {
  in6_addr bytes;
  const std::string v6 =
      host.find(':') == host.npos ? fmt::format("::ffff:{}", host) : std::string(host);
  if (::inet_pton(AF_INET6, v6.c_str(), &bytes) != 1) return std::nullopt;
  return bytes;
}

}  // namespace

std::string PeerAddress::ToString() const {
  return host.find(':') == host.npos ? fmt::format("{}:{}", host, port)
                                     : fmt::format("[{}]:{}", host, port);
}

bool PeerAddress::IsLoopback() const {
  in_addr v4;
  in6_addr v6;
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  if (::inet_pton(AF_INET6, host.c_str(), &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6);
  return host == "localhost";
}

bool PeerAddress::IsEvery() const {
  in_addr v4;
  in6_addr v6;
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) return v4.s_addr == htonl(INADDR_ANY);
  return ::inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_UNSPECIFIED(&v6);
}

bool PeerAddress::IsNamed(std::span<const std::string> names) const {
  const std::size_t dot = host.find('.');
  const std::string_view above = dot == host.npos ? "" : std::string_view(host).substr(dot);
  const std::optional<in6_addr> own = NumbersOf(host);
  return std::ranges::any_of(names, [&](std::string_view name) {
    if (own) {
      const std::optional<in6_addr> other = NumbersOf(name);
      return other && std::memcmp(&*own, &*other, sizeof *own) == 0;
    }
    return name == host || (!above.empty() && name.starts_with('*') && name.substr(1) == above);
  });
}

Result<PeerAddress> ParsePeerAddress(std::string_view text) {
  const auto wrong = [&] {
    return InvalidArgument("'{}': not a peer's address, expected host:port", text);
  };
  const std::size_t colon = text.rfind(':');
  if (colon == text.npos) return wrong();
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
    if (!IsV6(host)) return wrong();
  } else if (!IsNameOrNumbers(host)) {
    return wrong();
  }
  PeerAddress address{.host = std::string(host)};
  const char* end = digits.data() + digits.size();
  const auto [at, error] = std::from_chars(digits.data(), end, address.port);
  if (error != std::errc() || at != end || address.port == 0) return wrong();
  return address;
}

std::string WithUsualPort(std::string_view address, std::uint16_t usual) {
  if (IsV6(address)) return PeerAddress{.host = std::string(address), .port = usual}.ToString();
  const bool is_bare =
      address.find(':') == address.npos || (address.starts_with('[') && address.ends_with(']'));
  return is_bare ? fmt::format("{}:{}", address, usual) : std::string(address);
}

std::string AddressOfPeerUri(std::string_view uri) {
  for (const std::string_view scheme : {"ipv4:", "ipv6:"}) {
    if (uri.starts_with(scheme)) uri.remove_prefix(scheme.size());
  }
  std::string text;
  while (!uri.empty()) {
    unsigned char byte = 0;
    const char* digits = uri.data() + 1;
    if (uri.size() >= 3 && uri[0] == '%' &&
        std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
      text += static_cast<char>(byte);
      uri.remove_prefix(3);
    } else {
      text += uri[0];
      uri.remove_prefix(1);
    }
  }
  return text;
}

}  // namespace troupe
