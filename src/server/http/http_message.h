// Requests and responses as values, as handlers see them; where they come from and how they are
// written is http_server.h's part.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// The first header of that name, whatever its case; empty if there is none.
std::string_view HeaderOf(const HttpHeaders& headers, std::string_view name);

struct HttpRequest {
  std::string method;  // "GET"
  std::string path;    // "/v1/models", without what follows a '?', escapes decoded
  std::string query;   // what follows it, as it came
  HttpHeaders headers;
  std::string body;
  std::string peer;  // "127.0.0.1:40312"

  std::string_view Header(std::string_view name) const { return HeaderOf(headers, name); }
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  HttpHeaders headers = {};  // besides those of type and length
  std::string body = {};
};

std::string_view ReasonOf(int status);  // "Not Found"

// The value of a parameter of a query, escapes decoded; empty if there is none.
std::string QueryValue(std::string_view query, std::string_view name);
// "%41+b" as "A+b", or "A b" where a plus is a space. Escapes that are none stay as they are.
std::string DecodePercent(std::string_view text, bool plus_is_space);

// "HTTP/1.1 200 OK\r\n…\r\n\r\n". A line break within a header would begin another one: such
// headers are left out.
std::string HeadOf(const HttpResponse& response, const HttpHeaders& more);

}  // namespace troupe
