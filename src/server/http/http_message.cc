#include "server/http/http_message.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace troupe {
namespace {

bool SameName(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool HasLineBreak(std::string_view text) { return text.find_first_of("\r\n") != text.npos; }

}  // namespace

std::string_view HeaderOf(const HttpHeaders& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (SameName(key, name)) return value;
  }
  return {};
}

std::string_view ReasonOf(int status) {
  struct Reason {
    int status;
    std::string_view text;
  };
  static constexpr std::array kReasons = {Reason{200, "OK"},
                                          Reason{204, "No Content"},
                                          Reason{304, "Not Modified"},
                                          Reason{400, "Bad Request"},
                                          Reason{401, "Unauthorized"},
                                          Reason{403, "Forbidden"},
                                          Reason{404, "Not Found"},
                                          Reason{405, "Method Not Allowed"},
                                          Reason{408, "Request Timeout"},
                                          Reason{409, "Conflict"},
                                          Reason{413, "Content Too Large"},
                                          Reason{415, "Unsupported Media Type"},
                                          Reason{429, "Too Many Requests"},
                                          Reason{431, "Request Header Fields Too Large"},
                                          Reason{499, "Client Closed Request"},
                                          Reason{500, "Internal Server Error"},
                                          Reason{501, "Not Implemented"},
                                          Reason{503, "Service Unavailable"},
                                          Reason{504, "Gateway Timeout"}};
  const auto found = std::ranges::find(kReasons, status, &Reason::status);
  return found == kReasons.end() ? "Unknown" : found->text;
}

std::string DecodePercent(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      const int high = HexDigit(text[i + 1]), low = HexDigit(text[i + 2]);
      if (high >= 0 && low >= 0) {
        decoded += static_cast<char>(high * 16 + low);
        i += 2;
        continue;
      }
    }
    decoded += text[i];
  }
  return decoded;
}

std::string HeadOf(const HttpResponse& response, const HttpHeaders& more) {
  std::string head = fmt::format("HTTP/1.1 {} {}\r\n", response.status, ReasonOf(response.status));
  const auto add = [&head](std::string_view name, std::string_view value) {
    if (!HasLineBreak(name) && !HasLineBreak(value)) head += fmt::format("{}: {}\r\n", name, value);
  };
  if (!response.content_type.empty()) add("Content-Type", response.content_type);
  for (const HttpHeaders* headers : {&response.headers, &more}) {
    for (const auto& [name, value] : *headers) add(name, value);
  }
  return head += "\r\n";
}

}  // namespace troupe
