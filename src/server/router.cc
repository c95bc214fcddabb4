#include "server/router.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "server/api_error.h"
#include "server/service_paths.h"

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
  void Break(int status) override { reply_->Break(status); }
  bool MayBreak() const override { return reply_->MayBreak(); }
  void Note(HttpUse use) override { reply_->Note(std::move(use)); }
  void WhenGone(std::function<void()> call) override { reply_->WhenGone(std::move(call)); }
  void WhenDoubted(std::function<bool()> call) override { reply_->WhenDoubted(std::move(call)); }

 private:
  HttpResponse Add(HttpResponse response) const {
    for (const auto& header : headers_) response.headers.push_back(header);
    return response;
  }

  HttpReplyPtr reply_;
  HttpHeaders headers_;
};

// "/v1/models/" is "/v1/models", as careless base URLs have it.
std::string_view WithoutSlash(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return path;
}

bool IsHealth(std::string_view path) { return EndpointOf(std::string(path)) == kHealth; }

// What answers HEAD is what answers GET.
std::string MethodOf(const HttpRequest& request) {
  return request.method == "HEAD" ? "GET" : request.method;
}

}  // namespace

Router::Router(AccessRules rules, Start start)
    : rules_(std::make_shared<const AccessRules>(std::move(rules))),
      open_(start == Start::kOpen),
      started_(std::chrono::system_clock::now().time_since_epoch() / std::chrono::milliseconds(1)) {
}

HttpHeaders Router::NamesOf(const HttpRequest& request) const {
  constexpr std::size_t kLongest = 128;
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
  std::string id(request.Header("x-request-id"));
  const bool is_word =
      !id.empty() && id.size() <= kLongest && id.find_first_not_of(kLetters) == id.npos;
  if (!is_word) id = fmt::format("req_{:x}{:06x}", started_, requests_.fetch_add(1));
  return {{"x-request-id", id}, {"request-id", id}};
}

void Router::Add(std::string method, std::string path, Door door, HttpHandler handler) {
  targets_[std::move(path)][std::move(method)] = {.door = door, .handler = std::move(handler)};
}

Router::Targets::const_iterator Router::Find(const std::string& asked) const {
  const std::string path(WithoutSlash(asked));
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
  HttpResponse response{.status = 405, .body = ErrorBody(status, StyleOf(request), 405)};
  response.headers.emplace_back("Allow", allowed);
  return response;
}

HttpResponse Router::Loading(const HttpRequest& request) {
  HttpResponse response{.status = 503, .headers = {{"Retry-After", "5"}}};
  if (IsHealth(request.path)) {
    response.body = R"({"status":"loading model"})";
  } else {
    const Status why(Code::kUnavailable, "the model is being loaded; try again");
    response.body = ErrorBody(why, StyleOf(request), 503);
  }
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
    for (HttpHeaders& headers : std::array{CrossOriginHeaders(*rules, request), NamesOf(request)}) {
      for (auto& header : headers) refusal->headers.push_back(std::move(header));
    }
  }
  return refusal;
}

std::optional<HttpResponse> Router::RefusalOf(const AccessRules& rules,
                                              const HttpRequest& request) const {
  const ErrorStyle style = StyleOf(request);
  const auto refuse = [&](Code code, const std::string& why, int status) {
    return HttpResponse{.status = status, .body = ErrorBody(Status(code, why), style, status)};
  };
  if (const std::string why = WhyForeign(rules, request); !why.empty()) {
    return refuse(Code::kPermissionDenied, why, 403);
  }
  if (request.method == "OPTIONS") return HttpResponse{.status = 204, .content_type = ""};
  const bool loading = !open_;
  const auto path = loading ? targets_.end() : Find(request.path);
  const bool open =
      loading ? IsHealth(request.path)
              : path != targets_.end() && std::ranges::all_of(path->second, [](const auto& target) {
                  return target.second.door == Door::kOpen;
                });
  if (!open && !MayAsk(rules, request)) {
    const bool silent =
        request.Header("authorization").empty() && request.Header("x-api-key").empty();
    HttpResponse refusal = refuse(
        Code::kPermissionDenied,
        silent ? "no key: expected 'Authorization: Bearer KEY' or 'x-api-key: KEY'" : "no such key",
        401);
    refusal.headers.emplace_back("WWW-Authenticate", "Bearer");
    return refusal;
  }
  if (loading) return Loading(request);
  if (path == targets_.end()) {
    return refuse(Code::kNotFound,
                  fmt::format("{} {}: there is no such path", request.method, request.path), 404);
  }
  if (!path->second.contains(MethodOf(request))) {
    return NoSuchMethod(request, path->second);
  }
  const std::string_view encoding = request.Header("content-encoding");
  if (!encoding.empty() && encoding != "identity") {
    return refuse(Code::kInvalidArgument,
                  fmt::format("Content-Encoding: {}, expected a body that is not compressed",
                              encoding.substr(0, 40)),
                  415);
  }
  return std::nullopt;
}

void Router::Serve(HttpRequest request, HttpReplyPtr reply) const {
  if (std::optional<HttpResponse> refusal = Refusal(request)) {
    return reply->Send(*std::move(refusal));
  }
  HttpHeaders headers = NamesOf(request);
  for (auto& header : CrossOriginHeaders(*rules(), request)) headers.push_back(std::move(header));
  reply = std::make_shared<WithHeaders>(std::move(reply), std::move(headers));
  request.path = WithoutSlash(request.path);
  const Target& target = Find(request.path)->second.at(MethodOf(request));
  if (target.door == Door::kOrder && !MayOrder(*rules(), request)) {
    TellRefused(request.path, 403);
    const Status why(Code::kPermissionDenied,
                     "an order: give the server keys, or send it from its own machine");
    return reply->Send({.status = 403, .body = ErrorBody(why, StyleOf(request), 403)});
  }
  DropUncheckedKey(*rules(), request);
  target.handler(std::move(request), std::move(reply));
}

void Router::TellRefused(const std::string& path, int status) const {
  if (!open_ || !when_refused_) return;
  const auto found = Find(path);
  when_refused_(found != targets_.end() ? found->first : "", status);
}

HttpResponse Router::TransportError(int status, const std::string& message,
                                    const HttpRequest& head) const {
  TellRefused(head.path, status);
  const Code code = status == 503 ? Code::kUnavailable : Code::kInvalidArgument;
  constexpr int kTooLong = 413;
  constexpr std::string_view kInstead =
      "; pictures and files count, though this model reads none of them: a talk is to be sent "
      "without them, or made shorter (whoever runs this server can let it be longer with "
      "--most-body)";
  HttpResponse response{
      .status = status,
      .headers = NamesOf(head),
      .body =
          ErrorBody(Status(code, status == kTooLong ? message + std::string(kInstead) : message),
                    StyleOf(head), status)};
  for (auto& header : CrossOriginHeaders(*rules(), head)) {
    response.headers.push_back(std::move(header));
  }
  return response;
}

}  // namespace troupe
