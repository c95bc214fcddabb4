// Writes an experts container: experts come in the order of precisions, layers and expert numbers;
// the index with their checksums is filled in at the end, and only then does the file get its name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/bytes.h"
#include "base/status.h"
#include "io/atomic_file.h"
#include "store/container_format.h"

namespace troupe {

class ContainerWriter {
 public:
  // `index` holds everything but offsets and checksums, which the writer fills in.
  static Result<ContainerWriter> Create(std::string path, ContainerIndex index);

  Bytes total_bytes() const { return total_; }  // that the file will have

  // The next expert's bytes, exactly as long as its layer says.
  Status Append(std::span<const std::byte> expert);
  // After the last expert: everything but the name. A caller that returns earlier leaves no file.
  Status Seal();
  // Gives a sealed container its name.
  Status Publish() { return file_.Commit(); }
  Status Finish();  // both

 private:
  ContainerWriter(AtomicFileWriter file, ContainerIndex index, Bytes total);

  AtomicFileWriter file_;
  ContainerIndex index_;
  Bytes total_;
  std::size_t precision_ = 0, layer_ = 0;  // whose turn it is
};

}  // namespace troupe
