#include "server/router.h"

#include <fmt/core.h>

#include <algorithm>
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

// What answers HEAD is what answers GET.
std::string MethodOf(const HttpRequest& request) {
  return request.method == "HEAD" ? "GET" : request.method;
}

}  // namespace

void Router::Add(std::string method, std::string path, Door door, HttpHandler handler) {
  targets_[std::move(path)][std::move(method)] = {.door = door, .handler = std::move(handler)};
}

Router::Targets::const_iterator Router::Find(const std::string& path) const {
  const auto exact = targets_.find(path);
  if (exact != targets_.end()) return exact;
  return std::ranges::find_if(targets_, [&](const auto& target) {
    const std::string& pattern = target.first;
    return pattern.ends_with("/*") && path.size() >= pattern.size() &&
           path.starts_with(pattern.substr(0, pattern.size() - 1));
  });
}

HttpResponse Router::NoSuchMethod(const HttpRequest& request, const Methods& methods) {
  std::string allowed;
  for (const auto& [name, ignored] : methods) {
    allowed += (allowed.empty() ? "" : ", ") + name;
  }
  const Status status =
      InvalidArgument("{} {}: expected {}", request.method, request.path, allowed);
  HttpResponse response{.status = 405, .body = ErrorBody(status, StyleOf(request.path), 405)};
  response.headers.emplace_back("Allow", allowed);
  return response;
}

void Router::set_rules(AccessRules rules) {
  auto next = std::make_shared<const AccessRules>(std::move(rules));
  const MutexLock lock(mu_);
  rules_.swap(next);
}

std::shared_ptr<const AccessRules> Router::rules() const {
  const MutexLock lock(mu_);
  return rules_;
}

std::optional<HttpResponse> Router::Refusal(const HttpRequest& request) const {
  const auto rules = this->rules();
  std::optional<HttpResponse> refusal = RefusalOf(*rules, request);
  if (refusal) {
    if (refusal->status >= 400) TellRefused(request.path, refusal->status);
    for (auto& header : CrossOriginHeaders(*rules, request)) {
      refusal->headers.push_back(std::move(header));
    }
  }
  return refusal;
}

std::optional<HttpResponse> Router::RefusalOf(const AccessRules& rules,
                                              const HttpRequest& request) const {
  const ErrorStyle style = StyleOf(request.path);
  const auto refuse = [&](Code code, const std::string& why, int status) {
    return HttpResponse{.status = status, .body = ErrorBody(Status(code, why), style, status)};
  };
  if (const std::string why = WhyForeign(rules, request); !why.empty()) {
    return refuse(Code::kPermissionDenied, why, 403);
  }
  if (request.method == "OPTIONS") return HttpResponse{.status = 204, .content_type = ""};
  const auto path = Find(request.path);
  const bool open =
      path != targets_.end() && std::ranges::all_of(path->second, [](const auto& target) {
        return target.second.door == Door::kOpen;
      });
  if (!open && !MayAsk(rules, request)) {
    const bool silent =
        request.Header("authorization").empty() && request.Header("x-api-key").empty();
    return refuse(
        Code::kPermissionDenied,
        silent ? "no key: expected 'Authorization: Bearer KEY' or 'x-api-key: KEY'" : "no such key",
        401);
  }
  if (path == targets_.end()) {
    return refuse(Code::kNotFound,
                  fmt::format("{} {}: there is no such path", request.method, request.path), 404);
  }
  if (!path->second.contains(MethodOf(request))) {
    return NoSuchMethod(request, path->second);
  }
  return std::nullopt;
}

void Router::Serve(HttpRequest request, HttpReplyPtr reply) const {
  if (std::optional<HttpResponse> refusal = Refusal(request)) {
    return reply->Send(*std::move(refusal));
  }
  if (HttpHeaders cross = CrossOriginHeaders(*rules(), request); !cross.empty()) {
    reply = std::make_shared<WithHeaders>(std::move(reply), std::move(cross));
  }
  Find(request.path)->second.at(MethodOf(request)).handler(std::move(request), std::move(reply));
}

void Router::TellRefused(const std::string& path, int status) const {
  if (!when_refused_) return;
  const auto found = Find(path);
  when_refused_(found != targets_.end() ? found->first : "", status);
}

HttpResponse Router::TransportError(int status, const std::string& message,
                                    const std::string& path) const {
  TellRefused(path, status);
  const Code code = status == 503 ? Code::kUnavailable : Code::kInvalidArgument;
  return {.status = status, .body = ErrorBody(Status(code, message), StyleOf(path), status)};
}

}  // namespace troupe
