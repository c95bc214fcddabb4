#include "sim/replay/future_uses.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

namespace troupe {
namespace {

struct Record {
  std::uint64_t index;  // of the expert in the grid
  std::uint64_t next;
};
constexpr std::size_t kRecords = 1 << 16;  // that are read or written together

Result<UniqueFd> NamelessFile() {
  std::string name = (std::filesystem::temp_directory_path() / "troupe-replay.XXXXXX").string();
  UniqueFd fd(::mkostemp(name.data(), O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, name);
  ::unlink(name.c_str());
  return fd;
}

Status WriteRecords(int fd, std::uint64_t at, std::span<const Record> records) {
  auto bytes = std::as_bytes(records);
  auto offset = static_cast<off_t>(at * sizeof(Record));
  while (!bytes.empty()) {
    const ssize_t wrote = ::pwrite(fd, bytes.data(), bytes.size(), offset);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return ErrnoStatus(errno, "the file of what a trace asks for next");
    bytes = bytes.subspan(static_cast<std::size_t>(wrote));
    offset += wrote;
  }
  return OkStatus();
}

Status ReadRecords(int fd, std::uint64_t at, std::span<Record> records) {
  auto bytes = std::as_writable_bytes(records);
  auto offset = static_cast<off_t>(at * sizeof(Record));
  while (!bytes.empty()) {
    const ssize_t read = ::pread(fd, bytes.data(), bytes.size(), offset);
    if (read < 0 && errno == EINTR) continue;
    if (read <= 0) return ErrnoStatus(errno, "the file of what a trace asks for next");
    bytes = bytes.subspan(static_cast<std::size_t>(read));
    offset += read;
  }
  return OkStatus();
}

}  // namespace

Result<FutureUses> FutureUses::Of(const TraceHeader& header, TracePasses& passes) {
  FutureUses uses(header.grid());
  TROUPE_ASSIGN_OR_RETURN(uses.file_, NamelessFile());
  TROUPE_RETURN_IF_ERROR(uses.AppendAsks(header, passes));
  TROUPE_RETURN_IF_ERROR(uses.AddNextUses());
  return uses;
}

Status FutureUses::AppendAsks(const TraceHeader& header, TracePasses& passes) {
  std::vector<Record> records;
  ReplayPass pass;
  const auto flush = [&] {
    TROUPE_RETURN_IF_ERROR(WriteRecords(file_.get(), asks_, records));
    asks_ += records.size();
    records.clear();
    return OkStatus();
  };
  while (true) {
    TROUPE_ASSIGN_OR_RETURN(const bool more, passes.Next(pass));
    if (!more) return flush();
    for (std::size_t l = 0; l < pass.demands.size(); ++l) {
      for (const ExpertDemand& demand : pass.demands[l]) {
        records.push_back({.index = grid_.Index({header.moe_layers[l], demand.expert}), .next = 0});
      }
    }
    if (records.size() >= kRecords) TROUPE_RETURN_IF_ERROR(flush());
  }
}

// From the end to the beginning.
Status FutureUses::AddNextUses() {
  first_.assign(grid_.Count(), Optimum::kNever);
  std::vector<Record> records;
  for (std::uint64_t end = asks_; end > 0;) {
    const std::uint64_t begin = end - std::min<std::uint64_t>(end, kRecords);
    records.resize(end - begin);
    TROUPE_RETURN_IF_ERROR(ReadRecords(file_.get(), begin, records));
    for (std::uint64_t at = end; at > begin; --at) {
      Record& record = records[at - 1 - begin];
      record.next = std::exchange(first_[record.index], at - 1);
    }
    TROUPE_RETURN_IF_ERROR(WriteRecords(file_.get(), begin, records));
    end = begin;
  }
  return OkStatus();
}

Optimum::Future FutureUses::Future() const {
  return {.first = first_,
          .next = [this, records = std::vector<Record>(), at = std::size_t{0},
                   position = std::uint64_t{0}]() mutable {
            if (at == records.size()) {
              TROUPE_CHECK(position < asks_);
              records.resize(std::min<std::uint64_t>(kRecords, asks_ - position));
              const Status read = ReadRecords(file_.get(), position, records);
              TROUPE_CHECK(read.ok());
              position += records.size();
              at = 0;
            }
            const Record& record = records[at++];
            return Optimum::Use{.id = {static_cast<std::uint32_t>(record.index / grid_.experts),
                                       static_cast<std::uint32_t>(record.index % grid_.experts)},
                                .next = record.next};
          }};
}

}  // namespace troupe
