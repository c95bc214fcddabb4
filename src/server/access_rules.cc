#include "server/access_rules.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

namespace troupe {
namespace {

constexpr std::string_view kAuthorization = "authorization", kApiKey = "x-api-key";

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
  return IsOfDesktopProgram(origin) ||
         std::ranges::find(rules.origins, "*") != rules.origins.end() ||
         std::ranges::find(rules.origins, origin) != rules.origins.end();
}

// What a client sent, to be typed in a shell by who reads it: nothing but plain letters.
std::string Quotable(std::string_view text, std::string_view otherwise) {
  constexpr std::size_t kLongest = 200;
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view(":/.-_[]").find(c) != std::string_view::npos;
  };
  return std::string(text.size() <= kLongest && std::ranges::all_of(text, is_plain) ? text
                                                                                    : otherwise);
}

}  // namespace

std::string_view KeyOf(const HttpRequest& request) {
  constexpr std::string_view kBearer = "bearer ";
  const std::string_view said = request.Header(kAuthorization);
  const bool bears = std::ranges::equal(said.substr(0, kBearer.size()), kBearer, {},
                                        [](unsigned char c) { return std::tolower(c); });
  if (bears) return said.substr(kBearer.size());
  return request.Header(kApiKey);
}

void DropUncheckedKey(const AccessRules& rules, HttpRequest& request) {
  if (!rules.keys.empty()) return;
  std::erase_if(request.headers, [](const auto& header) {
    const std::string name = Lower(header.first);
    return name == kAuthorization || name == kApiKey;
  });
}

std::string WhyForeign(const AccessRules& rules, const HttpRequest& request) {
  if (!rules.local_only) return {};
  const std::string_view host = request.Header("host"), origin = request.Header("origin");
  if (!IsThisMachine(rules, host)) {
    return fmt::format(
        "this server answers requests to its own machine: start it with --allow-host {}, or with "
        "keys",
        Quotable(HostIn(host), "HOST"));
  }
  if (origin.empty() || MayReadAnswers(rules, origin)) return {};
  const std::size_t begin = origin.find("://");  // "null": of a file, or hidden
  const bool is_own = begin != origin.npos && Lower(origin.substr(begin + 3)) == Lower(host);
  if (is_own) return {};
  return fmt::format(
      "this server answers no pages of other origins: start it with --cors {}, or with keys",
      Quotable(origin, "ORIGIN"));
}

bool IsOfDesktopProgram(std::string_view origin) {
  constexpr std::array<std::string_view, 5> kSchemes = {"app", "file", "tauri", "vscode-file",
                                                        "vscode-webview"};
  // Tauri's pages on Windows and Android. The name is this machine's everywhere (RFC 6761).
  if (origin == "http://tauri.localhost" || origin == "https://tauri.localhost") return true;
  const std::size_t end = origin.find("://");
  return end != origin.npos &&
         std::ranges::find(kSchemes, Lower(origin.substr(0, end))) != kSchemes.end();
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

bool MayOrder(const AccessRules& rules, const HttpRequest& request) {
  if (!MayAsk(rules, request)) return false;
  constexpr std::string_view kV4InV6 = "::ffff:";
  std::string_view peer = HostIn(request.peer);
  if (peer.starts_with(kV4InV6)) peer.remove_prefix(kV4InV6.size());
  return !rules.keys.empty() || (IsLoopback(peer) && request.Header("origin").empty());
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
