#include "gguf/writer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "gguf/encode.h"
#include "gguf/quoted.h"

namespace troupe {

GgufWriter::GgufWriter(AtomicFileWriter file, std::vector<TensorInfo> tensors,
                       std::uint64_t alignment, Bytes total)
    : file_(std::move(file)), tensors_(std::move(tensors)), alignment_(alignment), total_(total) {}

Result<GgufWriter> GgufWriter::Create(std::string path, const Metadata& metadata,
                                      std::span<const TensorSpec> tensors) {
  Result<EncodedHeader> header = EncodeHeader(metadata, tensors);
  if (!header.ok()) return Status(header.status()).WithContext(path);
  TROUPE_ASSIGN_OR_RETURN(AtomicFileWriter file, AtomicFileWriter::Create(std::move(path)));
  TROUPE_RETURN_IF_ERROR(file.Reserve(header->total));
  TROUPE_RETURN_IF_ERROR(file.Append(header->bytes));
  GgufWriter writer(std::move(file), std::move(header->tensors), header->alignment, header->total);
  TROUPE_RETURN_IF_ERROR(writer.Pad());
  return writer;
}

Status GgufWriter::Append(std::string_view tensor, std::span<const std::byte> bytes) {
  if (current_ == tensors_.size()) {
    return InvalidArgument("{}: tensor {} given after the last one that was declared", file_.path(),
                           Quoted(tensor));
  }
  const TensorInfo& expected = tensors_[current_];
  if (tensor != expected.name) {
    return InvalidArgument("{}: tensor {} given, the turn is at {}", file_.path(), Quoted(tensor),
                           Quoted(expected.name));
  }
  if (bytes.size() > expected.bytes.count() - given_) {
    return InvalidArgument("{}: tensor {} given {} bytes, {} declared", file_.path(),
                           Quoted(tensor), given_ + bytes.size(), expected.bytes.count());
  }
  TROUPE_RETURN_IF_ERROR(file_.Append(bytes));
  given_ += bytes.size();
  if (given_ < expected.bytes.count()) return OkStatus();
  ++current_;
  given_ = 0;
  return Pad();
}

// After the last tensor too: some readers take the whole padded data section at once.
Status GgufWriter::Pad() {
  constexpr std::array<std::byte, 4096> kZeros{};
  std::uint64_t missing = AlignUp(file_.size(), alignment_) - file_.size();
  while (missing > 0) {
    const std::uint64_t n = std::min<std::uint64_t>(missing, kZeros.size());
    TROUPE_RETURN_IF_ERROR(file_.Append(std::span(kZeros).first(n)));
    missing -= n;
  }
  return OkStatus();
}

Result<std::string> GgufWriter::Seal() {
  if (current_ < tensors_.size()) {
    const TensorInfo& tensor = tensors_[current_];
    return InvalidArgument("{}: tensor {} was given {} of its {} bytes", file_.path(),
                           Quoted(tensor.name), given_, tensor.bytes.count());
  }
  TROUPE_CHECK(file_.size() == total_.count());
  return file_.Seal();
}

Status GgufWriter::Finish() {
  TROUPE_RETURN_IF_ERROR(Seal().status());
  return Publish();
}

}  // namespace troupe
