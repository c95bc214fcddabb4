#include "fetch/plan/web_address.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>

namespace troupe {
namespace {

constexpr std::string_view kPlainScheme = "http://";
constexpr std::string_view kTlsScheme = "https://";

std::string InLowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

// Where the port begins in "host:port" or "[::1]:port", or the end.
std::size_t EndOfHost(std::string_view authority) {
  const std::size_t from = authority.starts_with('[') ? authority.find(']') : 0;
  if (from == std::string_view::npos) return authority.size();
  return std::min(authority.find(':', from), authority.size());
}

}  // namespace

Result<std::string> OriginOf(std::string_view address) {
  const auto no_address = [&] {
    return InvalidArgument("'{}' is no address of a server (https://…)", address);
  };
  const std::string scheme = InLowerCase(address.substr(0, address.find(':') + 3));
  if (scheme != kPlainScheme && scheme != kTlsScheme) return no_address();
  std::string_view authority = address.substr(scheme.size());
  authority = authority.substr(0, authority.find_first_of("/?#\\"));
  if (authority.find('@') != std::string_view::npos) {
    return InvalidArgument("'{}' has a user's name in it, which is not sent", address);
  }
  const std::size_t end = EndOfHost(authority);
  const std::string host = InLowerCase(authority.substr(0, end));
  if (host.empty() || std::ranges::any_of(host, [](unsigned char c) { return c <= ' '; })) {
    return no_address();
  }
  std::uint16_t port = scheme == kTlsScheme ? 443 : 80;
  if (end + 1 < authority.size()) {
    const std::string_view digits = authority.substr(end + 1);
    const auto [at, error] = std::from_chars(digits.begin(), digits.end(), port);
    if (error != std::errc() || at != digits.end()) return no_address();
  }
  return fmt::format("{}{}:{}", scheme, host, port);
}

Status CheckRedirect(std::string_view from, std::string_view to) {
  TROUPE_ASSIGN_OR_RETURN(const std::string before, OriginOf(from));
  TROUPE_ASSIGN_OR_RETURN(const std::string after, OriginOf(to));
  if (before.starts_with(kTlsScheme) && !after.starts_with(kTlsScheme)) {
    return Error(Code::kPermissionDenied, "{} sends us on to {}, which is not encrypted", before,
                 after);
  }
  return OkStatus();
}

std::string EncodedPath(std::string_view path) {
  std::string encoded;
  for (const char c : path) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("-._~/").find(c) != std::string_view::npos;
    if (plain) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

}  // namespace troupe
