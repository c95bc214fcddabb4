#include "gguf/reader.h"

#include <optional>
#include <utility>

#include "base/check.h"
#include "gguf/quoted.h"
#include "gguf/split.h"

namespace troupe {
namespace {

struct Part {
  ReadFile file;
  GgufHeader header;
};

Result<Part> OpenPart(std::string path) {
  TROUPE_ASSIGN_OR_RETURN(ReadFile file, ReadFile::Open(std::move(path)));
  TROUPE_ASSIGN_OR_RETURN(GgufHeader header, ParseGguf(file));
  return Part{std::move(file), std::move(header)};
}

// Fails unless `key` of the part is there and is `expected`.
Status ExpectUint(const Metadata& metadata, std::string_view key, std::uint64_t expected) {
  TROUPE_ASSIGN_OR_RETURN(const std::uint64_t found, metadata.GetUint(key));
  if (found != expected) return metadata.BadValue(key, fmt::format("{}", expected));
  return OkStatus();
}

// All parts of the model that the file at `path` says it is one of, in order.
Result<std::vector<Part>> OpenAllParts(const std::string& path, std::uint64_t count) {
  std::optional<SplitName> name = ParseSplitName(path);
  if (!name.has_value() || name->count != count) {
    return InvalidArgument("{}: one of {} parts, a name like NAME-00001-of-{:05}.gguf expected",
                           path, count, count);
  }
  std::vector<Part> parts;
  for (name->part = 1; name->part <= count; ++name->part) {
    TROUPE_ASSIGN_OR_RETURN(Part part, OpenPart(FormatSplitName(*name)));
    const Metadata& metadata = part.header.metadata;
    TROUPE_RETURN_IF_ERROR(ExpectUint(metadata, "split.count", count));
    TROUPE_RETURN_IF_ERROR(ExpectUint(metadata, "split.no", name->part - 1));
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace

Result<GgufModel> GgufModel::Open(const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(Part given, OpenPart(path));
  TROUPE_ASSIGN_OR_RETURN(const std::uint64_t count,
                          given.header.metadata.GetUintOr("split.count", 1));
  std::vector<Part> parts;
  if (count <= 1) {
    parts.push_back(std::move(given));
  } else {
    TROUPE_ASSIGN_OR_RETURN(parts, OpenAllParts(path, count));
  }
  GgufModel model;
  model.metadata_ = std::move(parts.front().header.metadata);
  for (Part& part : parts) {
    TROUPE_RETURN_IF_ERROR(model.AddFile(std::move(part.file), std::move(part.header)));
  }
  if (count > 1) {
    TROUPE_RETURN_IF_ERROR(
        ExpectUint(model.metadata_, "split.tensors.count", model.tensors_.size()));
  }
  return model;
}

Status GgufModel::AddFile(ReadFile file, GgufHeader header) {
  for (TensorInfo& tensor : header.tensors) {
    tensor.file = static_cast<std::uint32_t>(files_.size());
    const auto [at, inserted] = index_.try_emplace(tensor.name, tensors_.size());
    if (!inserted) {
      return DataLoss("{}: tensor {} is in {} already", file.path(), Quoted(tensor.name),
                      files_[tensors_[at->second].file].path());
    }
    tensors_.push_back(std::move(tensor));
  }
  files_.push_back(std::move(file));
  return OkStatus();
}

const TensorInfo* GgufModel::Find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

Result<const TensorInfo*> GgufModel::Require(std::string_view name) const {
  if (const TensorInfo* tensor = Find(name)) return tensor;
  return Error(Code::kNotFound, "{}: no tensor {}", path(), Quoted(name));
}

Status GgufModel::ReadTensor(const TensorInfo& tensor, std::span<std::byte> out) const {
  TROUPE_CHECK(out.size() == tensor.bytes.count());
  return ReadRange(tensor, 0, out);
}

Status GgufModel::ReadRange(const TensorInfo& tensor, std::uint64_t offset,
                            std::span<std::byte> out) const {
  TROUPE_CHECK(tensor.file < files_.size());
  TROUPE_CHECK(offset <= tensor.bytes.count() && out.size() <= tensor.bytes.count() - offset);
  return files_[tensor.file].ReadAt(tensor.offset + offset, out);
}

Bytes GgufModel::file_bytes() const {
  Bytes sum;
  for (const ReadFile& file : files_) sum += Bytes(file.size());
  return sum;
}

Bytes GgufModel::tensor_bytes() const {
  Bytes sum;
  for (const TensorInfo& tensor : tensors_) sum += tensor.bytes;
  return sum;
}

}  // namespace troupe
