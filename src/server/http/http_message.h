// Requests and responses as values, as handlers see them; where they come from and how they are
// written is http_server.h's part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
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
  HttpHeaders headers;
  std::string body;
  std::shared_ptr<void> held = {};  // the body's part of the server's memory, given back with it
  std::string peer = {};            // who sent it, once it is handled: "127.0.0.1:53124"

  std::string_view Header(std::string_view name) const { return HeaderOf(headers, name); }
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  HttpHeaders headers = {};  // besides those of type and length
  std::string body = {};
};

// What an answer was: for logs.
struct HttpUse {
  std::string model;  // empty: none answered
  std::size_t prompt_tokens = 0, answer_tokens = 0;
};

// A request that is over, for logs: nothing of what it said but where it went.
struct HttpEnded {
  enum class How {
    kAnswered,
    kLeft,     // the client, or the server ended first
    kTooSlow,  // let go with too much unread
    kCutOff,   // an error after its response had begun, which was broken off
  };
  std::string peer;          // "127.0.0.1:53124"
  std::string method, path;  // empty: it was no request of HTTP
  int status = 0;            // 0: it had no response yet; cut off: what it would have had
  std::uint64_t bytes = 0;   // sent, with the response's head
  double seconds = 0;        // from the end of the request to the last byte of its response
  How how = How::kAnswered;
  std::string id;  // of the response's x-request-id
  HttpUse use;
};

std::string_view ReasonOf(int status);  // "Not Found"

// "%41+b" as "A+b". Escapes that are none stay as they are.
std::string DecodePercent(std::string_view text);

// "HTTP/1.1 200 OK\r\n…\r\n\r\n". A line break within a header would begin another one: such
// headers are left out.
std::string HeadOf(const HttpResponse& response, const HttpHeaders& more);

}  // namespace troupe
