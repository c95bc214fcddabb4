#include "server/http/http_url.h"

#include <algorithm>
#include <charconv>

namespace troupe {
namespace {

constexpr std::uint16_t kPlainPort = 80, kTlsPort = 443;

Status NoUrl(std::string_view text, std::string_view why) {
  return InvalidArgument("'{}' is no address of a server: {}; expected http://HOST:PORT", text,
                         why);
}

bool IsOfHost(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '-' || c == '_';
}

// No blank and no control character: they would end a line of the request.
bool IsOfPath(char c) { return c > ' ' && c < '\x7f' && c != '?' && c != '#'; }

}  // namespace

std::string HttpUrl::Authority() const {
  std::string text = host.find(':') == host.npos ? host : "[" + host + "]";
  if (port != (tls ? kTlsPort : kPlainPort)) text += ":" + std::to_string(port);
  return text;
}

std::string HttpUrl::ToString() const {
  return (tls ? "https://" : "http://") + Authority() + path;
}

Result<HttpUrl> ParseHttpUrl(std::string_view text) {
  HttpUrl url;
  std::string_view rest = text;
  if (const std::size_t end = rest.find("://"); end != rest.npos) {
    const std::string_view scheme = rest.substr(0, end);
    if (scheme != "http" && scheme != "https") return NoUrl(text, "its scheme is not http");
    url.tls = scheme == "https";
    rest.remove_prefix(end + 3);
  }
  url.port = url.tls ? kTlsPort : kPlainPort;
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  url.path = rest.substr(slash);
  while (url.path.ends_with('/')) url.path.pop_back();
  if (!std::ranges::all_of(url.path, IsOfPath)) return NoUrl(text, "its path has other characters");
  rest = rest.substr(0, slash);

  std::string_view port;
  if (rest.starts_with('[')) {
    const std::size_t end = rest.find(']');
    if (end == rest.npos) return NoUrl(text, "'[' without ']'");
    url.host = rest.substr(1, end - 1);
    const bool numbers = std::ranges::all_of(
        url.host, [](char c) { return c == ':' || (IsOfHost(c) && c != '-' && c != '_'); });
    if (!numbers || url.host.find(':') == url.host.npos) {
      return NoUrl(text, "no IPv6 address in brackets");
    }
    rest.remove_prefix(end + 1);
    if (!rest.empty() && rest.front() != ':') return NoUrl(text, "text behind ']'");
    port = rest;
  } else {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    url.host = rest.substr(0, colon);
    port = rest.substr(colon);
    if (url.host.empty()) return NoUrl(text, "no host");
    if (!std::ranges::all_of(url.host, IsOfHost)) return NoUrl(text, "no host's name");
  }
  if (port.empty()) return url;
  port.remove_prefix(1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), url.port);
  if (error != std::errc() || end != port.data() + port.size() || url.port == 0) {
    return NoUrl(text, "no port from 1 to 65535");
  }
  return url;
}

}  // namespace troupe
