// Errors as values: Status for work that can fail, Result<T> for work that yields a T or fails.
// Codes carry gRPC's numbers, so the wire needs a cast and HTTP a table. Nothing here throws;
// taking the value of a failed Result is a bug and stops the program.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace troupe {

namespace internal {
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);
}

enum class Code {
  kOk = 0,
  kCancelled = 1,
  kInvalidArgument = 3,  // would fail on any machine: an option, a prompt, a file of another kind
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,   // needs more memory or context than there is
  kFailedPrecondition = 9,  // not in this state: a handle that was moved from, say
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,  // not now; retry_after() says when to come again, where that is known
  kDataLoss = 15,     // a damaged file, or one that could not be read
};

std::string_view CodeName(Code code);  // "not found"

class [[nodiscard]] Status {
 public:
  Status() = default;  // success
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {
    if (code == Code::kOk) internal::CheckFailed(__FILE__, __LINE__, "an error has a code");
  }

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }
  std::string ToString() const;  // "not found: model.gguf: no such file"

  // The same error with "context: " before its message: each layer adds what it alone knows.
  Status WithContext(std::string_view context) &&;

  // Seconds after which the same call may succeed; 0: not known.
  double retry_after() const { return retry_after_; }
  Status WithRetryAfter(double seconds) &&;

  // What was asked for, prompt and answer together, is longer than the context: a shorter talk may
  // be answered where coming again would not help.
  bool context_full() const { return context_full_; }
  Status WithContextFull() &&;

  bool operator==(const Status&) const = default;

 private:
  Code code_ = Code::kOk;
  bool context_full_ = false;
  double retry_after_ = 0;
  std::string message_;
};

inline Status OkStatus() { return Status(); }

template <typename T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(T value) : value_(std::move(value)) {}         // NOLINT: `return value;` is the point
  Result(Status status) : status_(std::move(status)) {  // NOLINT: so is `return error;`
    if (status_.ok()) internal::CheckFailed(__FILE__, __LINE__, "a value or an error");
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
