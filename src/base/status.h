// Status and Result (troupe/status.h, where they are defined for the whole engine and those who
// embed it) with what only the engine needs: errors made in one line, and early returns.
#pragma once

#include <fmt/core.h>
#include <troupe/status.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace troupe {

// Makes errors in one line: Error(Code::kNotFound, "{}: no such tensor", name).
template <typename... Args>
Status Error(Code code, fmt::format_string<Args...> format, Args&&... args) {
  return Status(code, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
Status InvalidArgument(fmt::format_string<Args...> format, Args&&... args) {
  return Status(Code::kInvalidArgument, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
Status DataLoss(fmt::format_string<Args...> format, Args&&... args) {
  return Status(Code::kDataLoss, fmt::format(format, std::forward<Args>(args)...));
}
// A text, or a talk, that does not fit into the context (Status::context_full).
template <typename... Args>
Status ContextFull(fmt::format_string<Args...> format, Args&&... args) {
  return Status(Code::kResourceExhausted, fmt::format(format, std::forward<Args>(args)...))
      .WithContextFull();
}

// "<what>: <strerror>" with the code that fits the errno.
Status ErrnoStatus(int errno_value, std::string_view what);

}  // namespace troupe

#define TROUPE_CONCAT_INNER(a, b) a##b
#define TROUPE_CONCAT(a, b) TROUPE_CONCAT_INNER(a, b)

#define TROUPE_RETURN_IF_ERROR(expression)                                    \
  do {                                                                        \
    if (::troupe::Status status_of_call = (expression); !status_of_call.ok()) \
      return status_of_call;                                                  \
  } while (false)

#define TROUPE_ASSIGN_OR_RETURN(target, expression) \
  TROUPE_ASSIGN_OR_RETURN_INNER(TROUPE_CONCAT(result_of_line_, __LINE__), target, expression)
#define TROUPE_ASSIGN_OR_RETURN_INNER(result, target, expression) \
  auto result = (expression);                                     \
  if (!result.ok()) return result.status();                       \
  target = std::move(result).value()
