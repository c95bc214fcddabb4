// Finds the handler of a request by its path and method, after asking whether the client may ask at
// all. What is said of every response, whoever gave it, is said here. Pure but for what it calls.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "server/access_rules.h"
#include "server/http/http_reply.h"

namespace troupe {

class Router {
 public:
  explicit Router(AccessRules rules) : rules_(std::move(rules)) {}

  // Anybody may ask for what is open: that the server lives, and the page, which holds nothing.
  enum class Door { kOpen, kKeyed };
  void Add(std::string method, std::string path, Door door, HttpHandler handler);

  // What a request is answered that has no handler, or may not ask; its body does not matter.
  std::optional<HttpResponse> Refusal(const HttpRequest& request) const;
  // Calls the handler, or answers with the refusal.
  void Serve(HttpRequest request, HttpReplyPtr reply) const;

 private:
  HttpResponse NoSuchMethod(const HttpRequest& request) const;

  struct Target {
    Door door = Door::kKeyed;
    HttpHandler handler;
  };

  AccessRules rules_;
  std::map<std::string, std::map<std::string, Target>> targets_;  // by path, then method
};

// An error of the transport, in the shape of the API that the path belongs to.
HttpResponse TransportError(int status, const std::string& message, const std::string& path);

}  // namespace troupe
