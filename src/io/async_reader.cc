#include "io/async_reader.h"

#include <array>
#include <utility>

#include "io/thread_reader.h"
#include "io/uring_reader.h"

namespace troupe {
namespace {

constexpr std::array<std::pair<ReaderKind, std::string_view>, 3> kNames = {{
    {ReaderKind::kAuto, "auto"},
    {ReaderKind::kUring, "uring"},
    {ReaderKind::kThreads, "threads"},
}};

}  // namespace

ReadAnswer AnswerTo(const ReadRequest& request, std::int64_t bytes_or_minus_errno) {
  ReadAnswer answer;
  answer.tag = request.tag;
  if (bytes_or_minus_errno < 0) {
    answer.status = ErrnoStatus(static_cast<int>(-bytes_or_minus_errno), "read");
  } else {
    answer.bytes = static_cast<std::size_t>(bytes_or_minus_errno);
  }
  return answer;
}

std::optional<ReaderKind> ReaderKindByName(std::string_view name) {
  for (const auto& [kind, known] : kNames) {
    if (known == name) return kind;
  }
  return std::nullopt;
}

std::string_view Name(ReaderKind kind) {
  for (const auto& [known, name] : kNames) {
    if (known == kind) return name;
  }
  return "unknown";
}

Result<std::unique_ptr<AsyncReader>> MakeReader(const ReaderOptions& options, std::string* why) {
  if (options.depth == 0 || options.depth > kMaxReaderDepth) {
    return InvalidArgument("{} reads at once; expected 1 to {}", options.depth, kMaxReaderDepth);
  }
  if (options.kind == ReaderKind::kThreads) return MakeThreadReader(options.depth);
  auto uring = MakeUringReader(options.depth);
  if (uring.ok() || options.kind == ReaderKind::kUring) return uring;
  if (why != nullptr) *why = uring.status().message();
  return MakeThreadReader(options.depth);
}

}  // namespace troupe
