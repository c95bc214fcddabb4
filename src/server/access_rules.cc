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

}  // namespace

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
  const bool all = std::ranges::find(rules.origins, "*") != rules.origins.end();
  if (!all && std::ranges::find(rules.origins, origin) == rules.origins.end()) return {};
  return {{"Access-Control-Allow-Origin", std::string(origin)},
          {"Vary", "Origin"},
          {"Access-Control-Allow-Methods", "GET, POST, OPTIONS"},
          {"Access-Control-Allow-Headers", "*, Authorization"}};
}

}  // namespace troupe
