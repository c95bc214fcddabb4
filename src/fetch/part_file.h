// A file that is on its way, beside the one it becomes: PATH.part, and PATH.part.json with what
// tells whether it may be gone on with. Whoever has one open has it alone, in this process and in
// others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/status.h"
#include "fetch/plan/pull_record.h"
#include "fetch/sha256.h"

namespace troupe {

class PartFile {
 public:
  // Opens what is there, or makes it. Bytes of another file than `wanted` are thrown away.
  // kUnavailable: somebody else is at it.
  static Result<PartFile> Open(std::string path, const PulledFile& wanted);

  std::uint64_t size() const { return size_; }
  // Of the reply that the bytes came from; empty: unknown.
  const std::string& etag() const { return etag_; }

  // The disk's space for all of it, so that a disk that is too full is found before the work.
  Status Reserve() const;
  Status SetEtag(const std::string& etag);
  // Reads what lies there already, for the checksum. `go_on` gets how many bytes are read; its no
  // ends with kCancelled.
  Status ReadAgain(const std::function<bool(std::uint64_t)>& go_on);
  // As many of what lies there as `most`.
  Result<std::vector<std::byte>> FirstBytes(std::uint64_t most) const;
  Status Append(std::span<const std::byte> bytes);
  Status StartAnew();

  // Gives it its name if it hashes to what was wanted; kDataLoss otherwise, and it is removed.
  Status Finish();

 private:
  PartFile(std::string path, const PulledFile& wanted, UniqueFd fd);

  Status ReadFacts();
  Status WriteFacts() const;
  std::string part() const { return path_ + ".part"; }
  std::string facts() const { return path_ + ".part.json"; }

  std::string path_;
  PulledFile wanted_;
  UniqueFd fd_;
  std::uint64_t size_ = 0;
  std::string etag_;
  Sha256 hash_;
};

// The files of PartFile beside `path` are removed. kUnavailable: somebody is at it.
Status RemovePartFile(const std::string& path);
// How many bytes of `path` are on their way; 0: none.
std::uint64_t SizeOfPartFile(const std::string& path);

}  // namespace troupe
