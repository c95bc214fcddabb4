#include "trace/trace_writer.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/fd.h"
#include "io/atomic_file.h"
#include "trace/trace_chunk.h"

namespace troupe {
namespace {

class Growing final : public TraceSink {
 public:
  Growing(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  Status Append(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const ssize_t wrote = ::write(fd_.get(), bytes.data(), bytes.size());
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) return ErrnoStatus(errno, fmt::format("{}: writing", path_));
      bytes = bytes.subspan(static_cast<std::size_t>(wrote));
    }
    return OkStatus();
  }
  Status Finish() override { return OkStatus(); }

 private:
  std::string path_;
  UniqueFd fd_;
};

class Whole final : public TraceSink {
 public:
  explicit Whole(AtomicFileWriter file) : file_(std::move(file)) {}
  Status Append(std::span<const std::byte> bytes) override { return file_.Append(bytes); }
  Status Finish() override { return file_.Commit(); }

 private:
  AtomicFileWriter file_;
};

}  // namespace

Result<std::unique_ptr<TraceSink>> GrowingFile(const std::string& path) {
  UniqueFd fd(path == "-" ? ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
                          : ::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666));
  if (!fd.valid()) return ErrnoStatus(errno, fmt::format("{}: creating it", path));
  return std::unique_ptr<TraceSink>(std::make_unique<Growing>(path, std::move(fd)));
}

Result<std::unique_ptr<TraceSink>> WholeFile(const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(AtomicFileWriter file, AtomicFileWriter::Create(path));
  return std::unique_ptr<TraceSink>(std::make_unique<Whole>(std::move(file)));
}

TraceWriter::TraceWriter(std::unique_ptr<TraceSink> sink, TraceHeader header,
                         const TraceWriterOptions& options)
    : sink_(std::move(sink)), header_(std::move(header)), options_(options) {}

Result<TraceWriter> TraceWriter::Create(std::unique_ptr<TraceSink> sink, TraceHeader header,
                                        const TraceWriterOptions& options) {
  TROUPE_RETURN_IF_ERROR(Validate(header));
  header.ends = true;
  TraceWriter writer(std::move(sink), std::move(header), options);
  TROUPE_RETURN_IF_ERROR(writer.sink_->Append(EncodeTraceHeader(writer.header_)));
  return writer;
}

std::uint32_t TraceWriter::TokensThatFit() const {
  const std::uint64_t a_token = RawChunkBytes(header_, 1, 0, 0);
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(options_.chunk_bytes / a_token, 1, options_.chunk_tokens));
}

Status TraceWriter::Append(TraceBlock block) {
  TROUPE_RETURN_IF_ERROR(Validate(header_, block));
  tokens_ += block.tokens;
  const std::uint32_t most = TokensThatFit();
  std::uint32_t at = 0;
  while (at < block.tokens) {
    const std::uint32_t count = std::min(block.tokens - at, most - waiting_tokens_);
    if (at == 0 && count == block.tokens) {
      at = block.tokens;
      waiting_tokens_ += count;
      waiting_.push_back(std::move(block));
      if (waiting_tokens_ == most) return Flush();
      return OkStatus();
    }
    waiting_.push_back(Slice(header_, block, at, count));
    waiting_tokens_ += count;
    at += count;
    if (waiting_tokens_ == most) TROUPE_RETURN_IF_ERROR(Flush());
  }
  return OkStatus();
}

Status TraceWriter::Flush() {
  if (waiting_.empty()) return OkStatus();
  const TraceBlock block = Join(header_, waiting_);
  waiting_.clear();
  waiting_tokens_ = 0;
  const std::uint64_t first = std::exchange(written_, written_ + block.tokens);
  return sink_->Append(EncodeTraceChunk(header_, block, first));
}

Status TraceWriter::Finish() {
  TROUPE_RETURN_IF_ERROR(Flush());
  TROUPE_RETURN_IF_ERROR(sink_->Append(EncodeTraceEnd(written_)));
  return sink_->Finish();
}

}  // namespace troupe
