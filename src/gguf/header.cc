#include "gguf/header.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "gguf/cursor.h"
#include "gguf/format.h"
#include "gguf/quoted.h"
#include "gguf/value_reader.h"

namespace troupe {
namespace {

std::string SupportedTypes() {
  std::string names;
  for (const TensorTypeInfo& type : AllTensorTypes()) {
    if (!names.empty()) names += ", ";
    names += type.name;
  }
  return names;
}

class HeaderParser {
 public:
  explicit HeaderParser(const ByteSource& source)
      : source_(source), cursor_(source, kMaxHeaderBytes.count()) {}

  Result<GgufHeader> Parse();

 private:
  Status ReadMagicAndVersion();
  // A count of things that take at least `least_bytes` each.
  Result<std::uint64_t> ReadCount(std::string_view things, std::uint64_t least_bytes);
  Status ReadEntry();
  Status ReadTensor();
  Result<TensorType> ReadTensorType();
  Status PlaceTensors();
  Status CheckPlaces() const;

  const ByteSource& source_;
  Cursor cursor_;
  GgufHeader header_;
  std::set<std::string, std::less<>> names_;
  std::vector<std::uint64_t> offset_fields_;  // where in the file each tensor's offset stands
};

Result<GgufHeader> HeaderParser::Parse() {
  header_.metadata = Metadata(std::string(source_.name()));
  TROUPE_RETURN_IF_ERROR(ReadMagicAndVersion());
  TROUPE_ASSIGN_OR_RETURN(const std::uint64_t tensors, ReadCount("tensors", kLeastTensorBytes));
  TROUPE_ASSIGN_OR_RETURN(const std::uint64_t entries, ReadCount("keys", kLeastEntryBytes));
  for (std::uint64_t i = 0; i < entries; ++i) {
    cursor_.set_context(fmt::format("key {} of {}", i + 1, entries));
    TROUPE_RETURN_IF_ERROR(ReadEntry());
  }
  TROUPE_ASSIGN_OR_RETURN(header_.alignment, AlignmentOf(header_.metadata));
  for (std::uint64_t i = 0; i < tensors; ++i) {
    cursor_.set_context(fmt::format("tensor {} of {}", i + 1, tensors));
    TROUPE_RETURN_IF_ERROR(ReadTensor());
  }
  TROUPE_RETURN_IF_ERROR(PlaceTensors());
  TROUPE_RETURN_IF_ERROR(CheckPlaces());
  return std::move(header_);
}

Status HeaderParser::ReadMagicAndVersion() {
  std::string magic(kMagic.size(), '\0');
  TROUPE_RETURN_IF_ERROR(cursor_.ReadBytes(std::as_writable_bytes(std::span(magic))));
  if (magic != kMagic) {
    return InvalidArgument("{}: begins with {}, {} expected: not a GGUF file", source_.name(),
                           Quoted(magic), Quoted(kMagic));
  }
  TROUPE_ASSIGN_OR_RETURN(header_.version, cursor_.Read<std::uint32_t>());
  if (header_.version == 2 || header_.version == 3) return OkStatus();
  // Versions are small numbers: one that has its value in the high byte was written by a machine
  // of the other byte order.
  const std::string found = (header_.version & 0xffff) == 0 && header_.version != 0
                                ? "big-endian"
                                : fmt::format("version {}", header_.version);
  return cursor_.ErrorAt(Code::kUnimplemented, cursor_.field_start(),
                         found + ", GGUF version 2 or 3 in little-endian expected");
}

// Accepts a count only if the remaining bytes could hold it, so that a few bytes cannot make the
// parser allocate gigabytes.
Result<std::uint64_t> HeaderParser::ReadCount(std::string_view things, std::uint64_t least_bytes) {
  TROUPE_ASSIGN_OR_RETURN(const std::uint64_t count, cursor_.Read<std::uint64_t>());
  if (count > cursor_.remaining() / least_bytes) {
    return cursor_.Corrupt("{} {} where {} bytes remain", count, things, cursor_.remaining());
  }
  return count;
}

Status HeaderParser::ReadEntry() {
  TROUPE_ASSIGN_OR_RETURN(std::string key, cursor_.ReadString(kMaxKeyBytes));
  if (key.empty()) return cursor_.Corrupt("the key has no characters");
  cursor_.set_context(fmt::format("key {}", Quoted(key)));
  if (header_.metadata.Find(key) != nullptr) return cursor_.Corrupt("a second one of that name");
  TROUPE_ASSIGN_OR_RETURN(const ValueType type, ReadValueType(cursor_));
  TROUPE_ASSIGN_OR_RETURN(Value value, ReadValue(cursor_, type));
  return header_.metadata.Add(std::move(key), std::move(value));
}

Status HeaderParser::ReadTensor() {
  TensorInfo tensor;
  TROUPE_ASSIGN_OR_RETURN(tensor.name, cursor_.ReadString(kMaxTensorNameBytes));
  if (tensor.name.empty()) return cursor_.Corrupt("the name has no characters");
  cursor_.set_context(fmt::format("tensor {}", Quoted(tensor.name)));
  if (!names_.insert(tensor.name).second) return cursor_.Corrupt("a second one of that name");

  TROUPE_ASSIGN_OR_RETURN(tensor.rank, cursor_.Read<std::uint32_t>());
  const std::uint64_t shape_field = cursor_.field_start();
  if (tensor.rank > kMaxTensorRank) {
    return cursor_.Corrupt("{} dimensions, at most {} allowed", tensor.rank, kMaxTensorRank);
  }
  for (std::uint32_t d = 0; d < tensor.rank; ++d) {
    TROUPE_ASSIGN_OR_RETURN(tensor.dims[d], cursor_.Read<std::uint64_t>());
  }
  TROUPE_ASSIGN_OR_RETURN(tensor.type, ReadTensorType());
  const Result<Bytes> bytes = SizeOfTensor(tensor);
  if (!bytes.ok()) {
    return cursor_.ErrorAt(Code::kDataLoss, shape_field, bytes.status().message());
  }
  tensor.bytes = *bytes;

  TROUPE_ASSIGN_OR_RETURN(tensor.offset, cursor_.Read<std::uint64_t>());
  offset_fields_.push_back(cursor_.field_start());
  if (tensor.offset % header_.alignment != 0) {
    return cursor_.Corrupt("offset {}, a multiple of {} expected", tensor.offset,
                           header_.alignment);
  }
  header_.tensors.push_back(std::move(tensor));
  return OkStatus();
}

Result<TensorType> HeaderParser::ReadTensorType() {
  TROUPE_ASSIGN_OR_RETURN(const auto number, cursor_.Read<std::uint32_t>());
  if (const TensorTypeInfo* type = FindTensorType(number)) return type->type;
  const std::string_view unread = UnreadTypeName(number);
  return cursor_.ErrorAt(
      Code::kUnimplemented, cursor_.field_start(),
      unread.empty()
          ? fmt::format("type number {}, one of {} expected", number, SupportedTypes())
          : fmt::format("type {}, which this does not read; a Q4_K_M of the same model would do",
                        unread));
}

// Offsets count from where tensor data begins, which is known only after the last tensor.
Status HeaderParser::PlaceTensors() {
  header_.data_offset = AlignUp(cursor_.position(), header_.alignment);
  const std::uint64_t size = source_.size();
  const std::uint64_t data_bytes = size > header_.data_offset ? size - header_.data_offset : 0;
  for (std::size_t i = 0; i < header_.tensors.size(); ++i) {
    TensorInfo& tensor = header_.tensors[i];
    const std::uint64_t bytes = tensor.bytes.count();
    if (tensor.offset > data_bytes || bytes > data_bytes - tensor.offset) {  // the sum could wrap
      cursor_.set_context(fmt::format("tensor {}", Quoted(tensor.name)));
      return cursor_.ErrorAt(
          Code::kDataLoss, offset_fields_[i],
          fmt::format("{} bytes at {} of the tensor data, which has {}: is the file cut short?",
                      bytes, tensor.offset, data_bytes));
    }
    tensor.offset += header_.data_offset;
  }
  return OkStatus();
}

// Sorted by offset, each tensor begins where the one before ends, but for the padding. A gap is
// what is left where a damaged or hostile table says less than was there: every writer leaves none.
Status HeaderParser::CheckPlaces() const {
  const std::vector<TensorInfo>& tensors = header_.tensors;
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&tensors](std::size_t a, std::size_t b) {
    return tensors[a].offset < tensors[b].offset;
  });
  std::uint64_t expected = header_.data_offset;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const TensorInfo& tensor = tensors[order[i]];
    if (tensor.offset < expected) {
      const TensorInfo& before = tensors[order[i - 1]];
      return DataLoss("{}, byte {}: tensor {} begins inside tensor {}, which has {} bytes from {}",
                      source_.name(), tensor.offset, Quoted(tensor.name), Quoted(before.name),
                      before.bytes.count(), before.offset);
    }
    if (tensor.offset > expected) {
      return DataLoss(
          "{}, byte {}: tensor {} begins there, expected at {}: what lies between belongs "
          "to no tensor",
          source_.name(), tensor.offset, Quoted(tensor.name), expected);
    }
    expected = AlignUp(tensor.offset + tensor.bytes.count(), header_.alignment);
  }
  return OkStatus();
}

}  // namespace

Result<GgufHeader> ParseGguf(const ByteSource& source) { return HeaderParser(source).Parse(); }

Result<std::uint32_t> AlignmentOf(const Metadata& metadata) {
  TROUPE_ASSIGN_OR_RETURN(const std::uint64_t alignment,
                          metadata.GetUintOr(kAlignmentKey, kDefaultAlignment));
  if (!std::has_single_bit(alignment) || !std::in_range<std::uint32_t>(alignment)) {
    return metadata.BadValue(kAlignmentKey, "a power of two below 2^32");
  }
  return static_cast<std::uint32_t>(alignment);
}

}  // namespace troupe
