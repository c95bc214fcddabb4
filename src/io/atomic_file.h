// Writes a file that appears under its name complete or not at all. Until Commit the bytes lie in
// the same folder without a name (O_TMPFILE), so that even a killed process leaves nothing behind;
// where the file system cannot do that they have a temporary name. The destructor removes it; after
// a kill the next writer of the same path does (temporary_name.h).
// Buffers appends. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/status.h"

namespace troupe {

class AtomicFileWriter {
 public:
  // The name of the bytes until Commit.
  enum class Until {
    kUnnamed,  // none, where the file system supports that
    kNamed     // a temporary one, as on a file system that does not
  };

  // Replaces `path` on Commit if it exists by then; its folder must exist now.
  static Result<AtomicFileWriter> Create(std::string path, Until until = Until::kUnnamed);

  AtomicFileWriter(AtomicFileWriter&& other) noexcept;
  AtomicFileWriter& operator=(AtomicFileWriter&&) = delete;
  ~AtomicFileWriter();  // without Commit: as if nothing had been written

  // Nobody but its user may read the file.
  Status MakePrivate();

  // Takes the disk's space for a file of that size now, so that a disk that is too full is found
  // before the work; where the file system cannot do that, nothing happens.
  Status Reserve(Bytes size);

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return flushed_ + buffer_.size(); }

  // After a failure every later call fails the same way: a file with a hole is never committed.
  Status Append(std::span<const std::byte> bytes);
  // Overwrites bytes that were appended before.
  Status WriteAt(std::uint64_t offset, std::span<const std::byte> bytes);
  // Makes what was appended durable already now, so that Seal does not take long at the end.
  Status SyncSoFar();
  // Makes the bytes durable and ends writing, so that little can fail after it. The result is where
  // this process can read them until Commit.
  Result<std::string> Seal();
  // Makes the bytes durable if they are not, then gives them their name. Once.
  Status Commit();

 private:
  AtomicFileWriter(std::string path, std::string temporary, UniqueFd fd);

  Status Flush();
  Status WriteFully(std::uint64_t offset, std::span<const std::byte> bytes);
  Status Publish();
  Status Fail(Status status);

  std::string path_;
  std::string temporary_;  // empty while the file has no name
  UniqueFd fd_;
  std::vector<std::byte> buffer_;
  std::uint64_t flushed_ = 0;
  bool sealed_ = false;
  Status failed_;
};

}  // namespace troupe
