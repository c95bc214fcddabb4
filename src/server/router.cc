#include "server/router.h"

#include <fmt/core.h>

#include <utility>

#include "server/api_error.h"

namespace troupe {
namespace {

// Adds the same headers to each response.
class WithHeaders final : public HttpReply {
 public:
  WithHeaders(HttpReplyPtr reply, HttpHeaders headers)
      : reply_(std::move(reply)), headers_(std::move(headers)) {}
  void Send(HttpResponse response) override { reply_->Send(Add(std::move(response))); }
  void Begin(HttpResponse head) override { reply_->Begin(Add(std::move(head))); }
  bool Write(std::string_view bytes) override { return reply_->Write(bytes); }
  void End() override { reply_->End(); }
  void WhenGone(std::function<void()> call) override { reply_->WhenGone(std::move(call)); }

 private:
  HttpResponse Add(HttpResponse response) const {
    for (const auto& header : headers_) response.headers.push_back(header);
    return response;
  }

  HttpReplyPtr reply_;
  HttpHeaders headers_;
};

ErrorStyle StyleOf(std::string_view path) {
  return path.starts_with("/v1/messages") ? ErrorStyle::kAnthropic : ErrorStyle::kOpenAi;
}

}  // namespace

void Router::Add(std::string method, std::string path, Door door, HttpHandler handler) {
  targets_[std::move(path)][std::move(method)] = {.door = door, .handler = std::move(handler)};
}

void Router::Serve(HttpRequest request, HttpReplyPtr reply) const {
  if (HttpHeaders cross = CrossOriginHeaders(rules_, request); !cross.empty()) {
    reply = std::make_shared<WithHeaders>(std::move(reply), std::move(cross));
  }
  if (request.method == "OPTIONS") return reply->Send({.status = 204, .content_type = ""});
  const ErrorStyle style = StyleOf(request.path);
  const auto path = targets_.find(request.path);
  if (path == targets_.end()) {
    if (!MayAsk(rules_, request)) {
      return reply->Send(ErrorResponse(Error(Code::kPermissionDenied, "no such key"), style));
    }
    return reply->Send(ErrorResponse(
        Error(Code::kNotFound, "{} {}: there is no such path", request.method, request.path),
        style));
  }
  const std::string& method = request.method == "HEAD" ? std::string("GET") : request.method;
  const auto target = path->second.find(method);
  if (target == path->second.end()) {
    std::string allowed;
    for (const auto& [name, ignored] : path->second) {
      allowed += (allowed.empty() ? "" : ", ") + name;
    }
    const Status status =
        InvalidArgument("{} {}: expected {}", request.method, request.path, allowed);
    HttpResponse response{.status = 405, .body = ErrorBody(status, style, 405)};
    response.headers.emplace_back("Allow", allowed);
    return reply->Send(std::move(response));
  }
  if (target->second.door == Door::kKeyed && !MayAsk(rules_, request)) {
    return reply->Send(ErrorResponse(
        Error(Code::kPermissionDenied, "{}",
              request.Header("authorization").empty() && request.Header("x-api-key").empty()
                  ? "no key: expected 'Authorization: Bearer KEY' or 'x-api-key: KEY'"
                  : "no such key"),
        style));
  }
  target->second.handler(std::move(request), std::move(reply));
}

}  // namespace troupe
