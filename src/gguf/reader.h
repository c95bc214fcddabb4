// A model in GGUF, in one file or split into several (name-00001-of-00003.gguf): its metadata, one
// table of all its tensors, and their bytes. Reads are plain preads and may come from any thread.
// model/ knows what the tensors mean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "gguf/header.h"
#include "gguf/metadata.h"
#include "gguf/tensor_info.h"
#include "io/file.h"

namespace troupe {

class GgufModel {
 public:
  // Any part of a split model opens all of it.
  static Result<GgufModel> Open(const std::string& path);

  const Metadata& metadata() const { return metadata_; }  // the first part's
  std::span<const TensorInfo> tensors() const { return tensors_; }
  const TensorInfo* Find(std::string_view name) const;  // null if there is none
  Result<const TensorInfo*> Require(std::string_view name) const;

  // `out` is as large as the tensor.
  Status ReadTensor(const TensorInfo& tensor, std::span<std::byte> out) const;
  // `offset` counts from the beginning of the tensor.
  Status ReadRange(const TensorInfo& tensor, std::uint64_t offset, std::span<std::byte> out) const;

  // The number of files, which TensorInfo::file indexes.
  std::span<const ReadFile> files() const { return files_; }
  const std::string& path() const { return files_.front().path(); }
  Bytes file_bytes() const;    // of all files
  Bytes tensor_bytes() const;  // of all tensors, without padding

 private:
  GgufModel() = default;

  Status AddFile(ReadFile file, GgufHeader header);

  Metadata metadata_;
  std::vector<ReadFile> files_;
  std::vector<TensorInfo> tensors_;
  std::map<std::string, std::size_t, std::less<>> index_;
};

}  // namespace troupe
