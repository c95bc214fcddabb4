#include "forge/model_output.h"

#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include "gguf/split.h"

namespace troupe {
namespace {

// The part each tensor goes to. A tensor larger than the limit has a part of its own.
Result<std::vector<std::size_t>> AssignParts(std::span<const TensorSpec> tensors, Bytes limit) {
  std::vector<std::size_t> parts;
  std::size_t part = 0;
  Bytes used;
  for (const TensorSpec& tensor : tensors) {
    TROUPE_ASSIGN_OR_RETURN(const Bytes bytes, SizeOfTensor(tensor));
    if (limit > Bytes() && used > Bytes() && used + bytes > limit) {
      ++part;
      used = Bytes();
    }
    used += bytes;
    parts.push_back(part);
  }
  return parts;
}

// Parts after the first say only which part they are, as llama.cpp's own do.
Metadata PartMetadata(const Metadata& whole, std::size_t part, std::size_t parts,
                      std::size_t tensors) {
  Metadata metadata = part == 0 ? whole : Metadata(whole.origin());
  metadata.Set("split.no", static_cast<std::uint16_t>(part));
  metadata.Set("split.count", static_cast<std::uint16_t>(parts));
  metadata.Set("split.tensors.count", static_cast<std::int32_t>(tensors));
  return metadata;
}

std::string PartName(const std::string& path, std::size_t part, std::size_t parts) {
  constexpr std::string_view kExtension = ".gguf";
  std::string prefix = path;
  if (prefix.ends_with(kExtension)) prefix.resize(prefix.size() - kExtension.size());
  return FormatSplitName({.prefix = std::move(prefix),
                          .part = static_cast<std::uint32_t>(part + 1),
                          .count = static_cast<std::uint32_t>(parts)});
}

}  // namespace

Result<ModelOutput> ModelOutput::Create(const std::string& path, const Metadata& metadata,
                                        std::span<const TensorSpec> tensors, Bytes split_bytes) {
  constexpr std::size_t kMostParts = 512;  // each is an open file
  ModelOutput output;
  output.tensors_.assign(tensors.begin(), tensors.end());
  TROUPE_ASSIGN_OR_RETURN(output.part_of_, AssignParts(tensors, split_bytes));
  const std::size_t parts = output.part_of_.back() + 1;
  if (parts > kMostParts) {
    return InvalidArgument("{}: {} parts of {}, at most {} expected", path, parts,
                           ToString(split_bytes), kMostParts);
  }
  std::size_t first = 0;
  for (std::size_t part = 0; part < parts; ++part) {
    std::size_t end = first;
    while (end < tensors.size() && output.part_of_[end] == part) ++end;
    const bool single = parts == 1;
    output.files_.push_back(single ? path : PartName(path, part, parts));
    TROUPE_ASSIGN_OR_RETURN(
        GgufWriter writer,
        GgufWriter::Create(output.files_.back(),
                           single ? metadata : PartMetadata(metadata, part, parts, tensors.size()),
                           tensors.subspan(first, end - first)));
    output.writers_.push_back(std::move(writer));
    first = end;
  }
  return output;
}

Status ModelOutput::Append(std::size_t tensor, std::span<const std::byte> bytes) {
  return writers_[part_of_[tensor]].Append(tensors_[tensor].name, bytes);
}

Status ModelOutput::Finish() {
  for (std::size_t part = 0; part < writers_.size(); ++part) {
    Status status = writers_[part].Finish();
    if (status.ok()) continue;
    std::error_code ignored;  // the failure to report is the first one
    while (part-- > 0) std::filesystem::remove(files_[part], ignored);
    return status;
  }
  return OkStatus();
}

Bytes ModelOutput::total_bytes() const {
  Bytes total;
  for (const GgufWriter& writer : writers_) total += writer.total_bytes();
  return total;
}

}  // namespace troupe
