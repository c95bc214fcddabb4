#include "cluster/face/etcd_options.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace troupe {
namespace {

bool IsPort(std::string_view text) {
  std::uint32_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port >= 1 && port <= 65535;
}

bool IsEndpoint(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || !IsPort(text.substr(colon + 1)))
    return false;
  const std::string_view host = text.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  // Blanks and slashes come of lists with spaces and of URLs.
  return host.find_first_of(" \t/") == std::string_view::npos &&
         (bracketed || host.find(':') == std::string_view::npos);
}

}  // namespace

Result<std::vector<std::string>> ParseEndpoints(std::string_view text) {
  std::vector<std::string> endpoints;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string_view endpoint = text.substr(at, comma - at);
    if (!IsEndpoint(endpoint)) {
      return InvalidArgument("etcd at '{}': '{}' is not HOST:PORT", text, endpoint);
    }
    endpoints.emplace_back(endpoint);
    at = comma + 1;
  }
  return endpoints;
}

}  // namespace troupe
