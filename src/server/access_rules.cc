#include "server/access_rules.h"

#include <algorithm>
#include <cctype>

namespace troupe {
namespace {

std::string_view KeyOf(const HttpRequest& request) {
  constexpr std::string_view kBearer = "bearer ";
  const std::string_view said = request.Header("authorization");
  const bool bears = std::ranges::equal(said.substr(0, kBearer.size()), kBearer, {},
                                        [](unsigned char c) { return std::tolower(c); });
  if (bears) return said.substr(kBearer.size());
  return request.Header("x-api-key");
}

// "localhost:8080" without the port; "[::1]:8080" as "::1".
std::string_view HostIn(std::string_view host) {
  if (host.starts_with('[')) return host.substr(1, host.find(']') - 1);
  return host.substr(0, host.find(':'));
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return lower;
}

// An address says where a request goes to; a name may be anybody's.
bool IsAddress(std::string_view host) {
  const auto in_v4 = [](unsigned char c) { return std::isdigit(c) != 0 || c == '.'; };
  const auto in_v6 = [](unsigned char c) { return std::isxdigit(c) != 0 || c == ':' || c == '.'; };
  return std::ranges::all_of(host, in_v4) ||
         (host.find(':') != host.npos && std::ranges::all_of(host, in_v6));
}

bool IsThisMachine(const AccessRules& rules, std::string_view host) {
  const std::string name = Lower(HostIn(host));
  return name.empty() || IsAddress(name) || name == "localhost" || name.ends_with(".localhost") ||
         std::ranges::find(rules.hosts, name, Lower) != rules.hosts.end();
}

bool MayReadAnswers(const AccessRules& rules, std::string_view origin) {
  return std::ranges::find(rules.origins, "*") != rules.origins.end() ||
         std::ranges::find(rules.origins, origin) != rules.origins.end();
}

}  // namespace

bool IsForeign(const AccessRules& rules, const HttpRequest& request) {
  if (!rules.local_only) return false;
  const std::string_view host = request.Header("host"), origin = request.Header("origin");
  if (!IsThisMachine(rules, host)) return true;
  if (origin.empty() || MayReadAnswers(rules, origin)) return false;
  const std::size_t begin = origin.find("://");  // "null": of a file, or hidden
  return begin == origin.npos || Lower(origin.substr(begin + 3)) != Lower(host);
}

bool IsLoopback(std::string_view host) {
  return host.starts_with("127.") || host == "::1" || host == "localhost";
}

bool SameSecret(std::string_view a, std::string_view b) {
  unsigned different = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const char other = b.empty() ? '\0' : b[i % b.size()];
    different |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(other);
  }
  return different == 0;
}

bool MayAsk(const AccessRules& rules, const HttpRequest& request) {
  if (rules.keys.empty()) return true;
  const std::string_view key = KeyOf(request);
  bool known = false;
  for (const std::string& allowed : rules.keys) known |= SameSecret(key, allowed);
  return known;
}

HttpHeaders CrossOriginHeaders(const AccessRules& rules, const HttpRequest& request) {
  const std::string_view origin = request.Header("origin");
  if (origin.empty()) return {};
  if (!MayReadAnswers(rules, origin)) return {};
  return {{"Access-Control-Allow-Origin", std::string(origin)},
          {"Vary", "Origin"},
          {"Access-Control-Allow-Methods", "GET, POST, OPTIONS"},
          {"Access-Control-Allow-Headers", "*, Authorization"}};
}

}  // namespace troupe
