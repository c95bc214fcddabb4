// "https://host:8443/base" in its parts, for those who ask servers. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace troupe {

struct HttpUrl {
  bool tls = false;
  std::string host;  // without the brackets of an IPv6 address
  std::uint16_t port = 80;
  std::string path;  // what comes before that of a request: "" or "/base"

  // "host:8080", "[::1]:8080"; without the port if it is the scheme's own.
  std::string Authority() const;
  // "http://host:8080/base"
  std::string ToString() const;

  bool operator==(const HttpUrl&) const = default;
};

// Without a scheme it is http. kInvalidArgument: it is no URL of a server.
Result<HttpUrl> ParseHttpUrl(std::string_view text);

}  // namespace troupe
