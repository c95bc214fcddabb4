#include "base/status.h"

#include <cerrno>
#include <cstring>

namespace troupe {

std::string_view CodeName(Code code) {
  switch (code) {
    case Code::kOk:
      return "ok";
    case Code::kCancelled:
      return "cancelled";
    case Code::kInvalidArgument:
      return "invalid argument";
    case Code::kDeadlineExceeded:
      return "deadline exceeded";
    case Code::kNotFound:
      return "not found";
    case Code::kAlreadyExists:
      return "already exists";
    case Code::kPermissionDenied:
      return "permission denied";
    case Code::kResourceExhausted:
      return "resource exhausted";
    case Code::kFailedPrecondition:
      return "failed precondition";
    case Code::kUnimplemented:
      return "unimplemented";
    case Code::kInternal:
      return "internal";
    case Code::kUnavailable:
      return "unavailable";
    case Code::kDataLoss:
      return "data loss";
  }
  return "unknown";
}

std::string Status::ToString() const {
  if (ok()) return "ok";
  return fmt::format("{}: {}", CodeName(code_), message_);
}

Status Status::WithContext(std::string_view context) && {
  if (!ok()) message_ = fmt::format("{}: {}", context, message_);
  return std::move(*this);
}

Status Status::WithRetryAfter(double seconds) && {
  retry_after_ = seconds;
  return std::move(*this);
}

Status Status::WithContextFull() && {
  context_full_ = true;
  return std::move(*this);
}

Status ErrnoStatus(int errno_value, std::string_view what) {
  Code code = Code::kUnavailable;
  switch (errno_value) {
    case ENOENT:
    case ENOTDIR:
      code = Code::kNotFound;
      break;
    case EACCES:
    case EPERM:
    case EROFS:
      code = Code::kPermissionDenied;
      break;
    case EEXIST:
      code = Code::kAlreadyExists;
      break;
    case ENOSPC:
    case EDQUOT:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case EFBIG:
      code = Code::kResourceExhausted;
      break;
    case EINVAL:
    case EISDIR:
      code = Code::kInvalidArgument;
      break;
    default:
      break;
  }
  return Error(code, "{}: {}", what, std::strerror(errno_value));
}

}  // namespace troupe
