// A file opened for reading at any offset by any thread, with whole reads: a short one is an error.
// Goes through the page cache; direct_file.h and async_reader.h are for direct and asynchronous
// reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/status.h"
#include "io/byte_source.h"

namespace troupe {

// Tells whether two names mean the same bytes, and whether a file changed since it was measured.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  std::int64_t modified_ns = 0;

  bool operator==(const FileIdentity&) const = default;
};

// Of the file that a path names now; absent: there is none.
std::optional<FileIdentity> IdentityOf(const std::string& path);

class ReadFile final : public ByteSource {
 public:
  // Regular files only: everything here relies on a size that stays.
  static Result<ReadFile> Open(std::string path);

  const std::string& path() const { return path_; }
  const FileIdentity& identity() const { return identity_; }  // as it was when opened
  int fd() const { return fd_.get(); }

  std::string_view name() const override { return path_; }
  std::uint64_t size() const override { return identity_.size; }
  Status ReadAt(std::uint64_t offset, std::span<std::byte> out) const override;

 private:
  ReadFile(std::string path, UniqueFd fd, const FileIdentity& identity);

  std::string path_;
  UniqueFd fd_;
  FileIdentity identity_;
};

}  // namespace troupe
