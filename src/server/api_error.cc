#include "server/api_error.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "base/json.h"
#include "server/http/error_message.h"

namespace troupe {
namespace {

std::string_view TypeOf(int status, ErrorStyle style) {
  const bool anthropic = style == ErrorStyle::kAnthropic;
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return anthropic ? "permission_error" : "invalid_request_error";
    case 404:
      return anthropic ? "not_found_error" : "invalid_request_error";
    case 413:
      return anthropic ? "request_too_large" : "invalid_request_error";
    case 429:
      return "rate_limit_error";
    case 503:
      return anthropic ? "overloaded_error" : "service_unavailable_error";
    case 504:
      return anthropic ? "timeout_error" : "server_error";
    default:
      if (status < 500) return "invalid_request_error";
      return anthropic ? "api_error" : "server_error";
  }
}

// The place in the request that a message begins with: "request: n: 5, expected less".
std::string ParamOf(std::string_view message) {
  constexpr std::string_view kBody = "request: ", kMissing = "no '";
  if (!message.starts_with(kBody)) return {};
  message.remove_prefix(kBody.size());
  std::string place(message.substr(0, std::min(message.find(": "), message.size())));
  const bool is_place = place.find_first_not_of(
                            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                            "0123456789_-.[]$") == place.npos;
  if (is_place && place.size() < message.size()) return place;
  if (!message.starts_with(kMissing)) return {};
  message.remove_prefix(kMissing.size());
  return std::string(message.substr(0, message.find('\'')));
}

constexpr std::string_view kContextFull = "context_length_exceeded";

Json OpenAiCode(const Status& status, int http) {
  if (status.context_full()) return kContextFull;
  switch (http) {
    case 401:
      return "invalid_api_key";
    case 429:
      return "rate_limit_exceeded";
    default:
      return nullptr;
  }
}

bool SaysContextFull(const std::string& body) {
  const std::optional<Json> json = Json::Parse(body);
  const Json* const error = json ? json->Find("error") : nullptr;
  const Json* const code = error != nullptr ? error->Find("code") : nullptr;
  return code != nullptr && *code == Json(kContextFull);
}

Code CodeIn(int status) {
  switch (status) {
    case 400:
      return Code::kInvalidArgument;
    case 401:
      return Code::kPermissionDenied;
    case 404:
      return Code::kNotFound;
    case 429:
    case 503:
      return Code::kUnavailable;
    case 504:
      return Code::kDeadlineExceeded;
    default:
      return Code::kInternal;
  }
}

}  // namespace

ErrorStyle StyleOf(std::string_view path) {
  return path.starts_with("/v1/messages") ? ErrorStyle::kAnthropic : ErrorStyle::kOpenAi;
}

ErrorStyle StyleOf(const HttpRequest& request) {
  return request.Header("anthropic-version").empty() ? StyleOf(request.path)
                                                     : ErrorStyle::kAnthropic;
}

Status PromptTooLong(std::size_t tokens, std::size_t context, ErrorStyle style) {
  constexpr std::string_view kHint =
      "whoever runs this server can give it a longer context with --ctx";
  if (style == ErrorStyle::kAnthropic) {
    return ContextFull("prompt is too long: {} tokens > {} maximum ({})", tokens, context, kHint);
  }
  return ContextFull(
      "This model's maximum context length is {} tokens. However, your request resulted in {} "
      "tokens. Please reduce its length ({}).",
      context, tokens, kHint);
}

int HttpStatusOf(const Status& status) {
  switch (status.code()) {
    case Code::kOk:
      return 200;
    case Code::kInvalidArgument:
    case Code::kResourceExhausted:
    case Code::kUnimplemented:
      return 400;
    case Code::kPermissionDenied:
      return 401;
    case Code::kNotFound:
      return 404;
    case Code::kUnavailable:
      return status.retry_after() > 0 ? 429 : 503;
    case Code::kFailedPrecondition:
    case Code::kCancelled:
      return 503;
    case Code::kDeadlineExceeded:
      return 504;
    default:
      return 500;
  }
}

std::string ErrorBody(const Status& status, ErrorStyle style, std::optional<int> http) {
  const int code = http.value_or(HttpStatusOf(status));
  Json error = {{"message", status.message()}, {"type", TypeOf(code, style)}};
  if (style == ErrorStyle::kAnthropic) {
    return Json{{"type", "error"}, {"error", std::move(error)}}.Dump();
  }
  const std::string param = ParamOf(status.message());
  error["param"] = param.empty() ? Json() : Json(param);
  error["code"] = OpenAiCode(status, code);
  return Json{{"error", std::move(error)}}.Dump();
}

HttpResponse NoSuchModel(std::string_view asked, std::string_view own, ErrorStyle style) {
  const std::string message =
      fmt::format("The model '{}' does not exist: this server has '{}'", asked, own);
  if (style == ErrorStyle::kAnthropic) {
    return {.status = 404, .body = ErrorBody(Status(Code::kNotFound, message), style)};
  }
  const Json error = {{"message", message},
                      {"type", TypeOf(404, ErrorStyle::kOpenAi)},
                      {"param", "model"},
                      {"code", "model_not_found"}};
  return {.status = 404, .body = Json{{"error", error}}.Dump()};
}

HttpResponse ErrorResponse(const Status& status, ErrorStyle style) {
  HttpResponse response{.status = HttpStatusOf(status), .body = ErrorBody(status, style)};
  if (status.retry_after() > 0) {
    const auto seconds = static_cast<std::uint64_t>(std::ceil(status.retry_after()));
    response.headers.emplace_back("Retry-After",
                                  fmt::format("{}", std::max<std::uint64_t>(1, seconds)));
  }
  return response;
}

Status StatusIn(const HttpResponse& error) {
  std::string message = ErrorMessageIn(error.body);
  if (SaysContextFull(error.body)) return ContextFull("{}", message);
  Status status(CodeIn(error.status), std::move(message));
  const std::string after(HeaderOf(error.headers, "retry-after"));
  if (after.empty()) return status;
  return std::move(status).WithRetryAfter(std::strtod(after.c_str(), nullptr));
}

}  // namespace troupe
