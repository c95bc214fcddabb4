// A file opened for large reads that bypass the page cache; experts are loaded from these. Where
// the file system refuses O_DIRECT (tmpfs, some network mounts) reads go through the page cache
// instead, and direct() says so. An AsyncReader does the reading.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/status.h"
#include "io/file.h"

namespace troupe {

// Offsets, lengths and addresses of direct reads are multiples of this on every file system met.
inline constexpr Bytes kDirectAlignment = 4_KiB;

class DirectFile {
 public:
  // Regular files only.
  static Result<DirectFile> Open(std::string path);

  const std::string& path() const { return file_.path(); }
  const FileIdentity& identity() const { return file_.identity(); }  // as it was when opened
  std::uint64_t size() const { return file_.size(); }
  int fd() const { return file_.fd(); }
  bool direct() const { return direct_; }

  // Fails if the file changed since it was opened: truncated, grown or written to. A file whose
  // name now belongs to another file passes, because this one can still be read.
  Status CheckUnchanged() const;

 private:
  DirectFile(ReadFile file, bool direct) : file_(std::move(file)), direct_(direct) {}

  ReadFile file_;
  bool direct_;
};

}  // namespace troupe
