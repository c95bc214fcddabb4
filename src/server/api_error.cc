#include "server/api_error.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/json.h"

namespace troupe {
namespace {

std::string_view TypeOf(int status, ErrorStyle style) {
  const bool anthropic = style == ErrorStyle::kAnthropic;
  switch (status) {
    case 401:
      return "authentication_error";
    case 404:
      return anthropic ? "not_found_error" : "invalid_request_error";
    case 429:
      return "rate_limit_error";
    case 503:
      return anthropic ? "overloaded_error" : "service_unavailable_error";
    default:
      if (status < 500) return "invalid_request_error";
      return anthropic ? "api_error" : "server_error";
  }
}

}  // namespace

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
  error["code"] = code;
  return Json{{"error", std::move(error)}}.Dump();
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

}  // namespace troupe
