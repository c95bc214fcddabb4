// Errors as values: Status for work that can fail, Result<T> for work that yields a T or fails.
// Codes carry gRPC's numbers, so the wire needs a cast and HTTP a table. Nothing here throws;
// taking the value of a failed Result is a bug and stops the program.
#pragma once

#include <fmt/core.h>

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/check.h"

namespace troupe {

enum class Code {
  kOk = 0,
  kCancelled = 1,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
};

std::string_view CodeName(Code code);

class [[nodiscard]] Status {
 public:
  Status() = default;  // success
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {
    TROUPE_CHECK(code != Code::kOk);
  }

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }
  std::string ToString() const;

  // The same error with "context: " before its message: each layer adds what it alone knows.
  Status WithContext(std::string_view context) &&;

  bool operator==(const Status&) const = default;

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

inline Status OkStatus() { return Status(); }

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

// "<what>: <strerror>" with the code that fits the errno.
Status ErrnoStatus(int errno_value, std::string_view what);

template <typename T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(T value) : value_(std::move(value)) {}         // NOLINT: `return value;` is the point
  Result(Status status) : status_(std::move(status)) {  // NOLINT: so is `return error;`
    TROUPE_CHECK(!status_.ok());
  }

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }

  const T& value() const& { return Checked(*this); }
  T& value() & { return Checked(*this); }
  T&& value() && { return std::move(Checked(*this)); }
  const T& operator*() const& { return value(); }
  T& operator*() & { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  const T* operator->() const { return &value(); }
  T* operator->() { return &value(); }

 private:
  template <typename Self>
  static auto& Checked(Self& self) {
    if (!self.value_.has_value()) [[unlikely]]
      DieOfMissingValue(self.status_);
    return *self.value_;
  }
  [[noreturn]] static void DieOfMissingValue(const Status& status) {
    internal::CheckFailed(__FILE__, __LINE__, status.ToString().c_str());
  }

  Status status_;
  std::optional<T> value_;
};

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
