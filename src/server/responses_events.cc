#include "server/responses_events.h"

#include <fmt/core.h>

#include <cmath>
#include <utility>

#include "server/api_error.h"
#include "server/sse.h"

namespace troupe {
namespace {

// Codex tries again unless the code says that it would be in vain: the context is full, or the
// request is no good. It waits where a message says for how long.
std::string_view CodeOfFailure(const Status& status) {
  if (status.context_full()) return "context_length_exceeded";
  switch (status.code()) {
    case Code::kInvalidArgument:
    case Code::kResourceExhausted:
    case Code::kUnimplemented:
      return "invalid_prompt";
    case Code::kDeadlineExceeded:
      return "server_is_overloaded";
    case Code::kUnavailable:
      return status.retry_after() > 0 ? "rate_limit_exceeded" : "server_error";
    default:
      return "server_error";
  }
}

}  // namespace

std::string ResponsesEvent(std::string_view type, std::uint64_t number, const Json& fields) {
  Json json = {{"type", type}, {"sequence_number", number}};
  json.Update(fields);
  return EventOf(type, json.Dump());
}

Json ResponseJson(const OpenAiHead& head, std::string_view status) {
  return {{"id", head.id},       {"object", "response"},    {"created_at", head.created},
          {"status", status},    {"error", nullptr},        {"incomplete_details", nullptr},
          {"model", head.model}, {"output", Json::Array()}, {"previous_response_id", nullptr},
          {"store", false},      {"usage", nullptr}};
}

Json ResponseFailure(const Status& status) {
  std::string message = status.message();
  if (status.retry_after() > 0) {
    message += fmt::format("; try again in {}s", std::ceil(status.retry_after()));
  }
  return {{"code", CodeOfFailure(status)}, {"message", std::move(message)}};
}

}  // namespace troupe
