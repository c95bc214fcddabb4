#include "gguf/encode.h"

#include <cstring>
#include <limits>
#include <set>
#include <string_view>
#include <type_traits>
#include <variant>

#include "gguf/format.h"
#include "gguf/header.h"
#include "gguf/quoted.h"

namespace troupe {
namespace {

class Encoder {
 public:
  std::vector<std::byte>& bytes() { return bytes_; }

  template <typename T>
  void Put(T number) {
    static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>);
    PutBytes(std::as_bytes(std::span(&number, 1)));
  }
  void PutBytes(std::span<const std::byte> bytes) {
    if (bytes.empty()) return;
    bytes_.resize(bytes_.size() + bytes.size());
    std::memcpy(&bytes_[bytes_.size() - bytes.size()], bytes.data(), bytes.size());
  }
  void PutString(std::string_view text) {
    Put(std::uint64_t{text.size()});
    PutBytes(std::as_bytes(std::span(text)));
  }

  Status PutValue(const Value& value);
  Status PutArray(const Array& array, int depth);

 private:
  template <typename T>
  Status PutElements(const std::vector<T>& list, int) {
    PutBytes(std::as_bytes(std::span(list)));
    return OkStatus();
  }
  Status PutElements(const std::vector<bool>& list, int) {
    for (const bool truth : list) Put(std::uint8_t{truth});
    return OkStatus();
  }
  Status PutElements(const StringArray& list, int) {
    for (const std::string_view text : list) PutString(text);
    return OkStatus();
  }
  Status PutElements(const std::vector<Array>& list, int depth) {
    for (const Array& array : list) TROUPE_RETURN_IF_ERROR(PutArray(array, depth + 1));
    return OkStatus();
  }

  std::vector<std::byte> bytes_;
};

Status Encoder::PutValue(const Value& value) {
  return std::visit(
      [this](const auto& v) {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, Array>) {
          return PutArray(v, 1);
        } else {
          if constexpr (std::is_same_v<T, std::string>) {
            PutString(v);
          } else if constexpr (std::is_same_v<T, bool>) {
            Put(std::uint8_t{v});
          } else {
            Put(v);
          }
          return OkStatus();
        }
      },
      value);
}

// Nested arrays carry their depth, so that nothing is written that the reader would refuse.
Status Encoder::PutArray(const Array& array, int depth) {
  if (depth > kMaxArrayDepth)
    return InvalidArgument("arrays nested more than {} deep", kMaxArrayDepth);
  Put(static_cast<std::uint32_t>(array.element_type()));
  Put(std::uint64_t{array.size()});
  return std::visit([this, depth](const auto& list) { return PutElements(list, depth); },
                    array.elements);
}

Status PutEntry(const Metadata::Entry& entry, Encoder& encoder) {
  if (entry.key.empty() || entry.key.size() > kMaxKeyBytes) {
    return InvalidArgument("key {} of {} bytes, 1 to {} expected", Quoted(entry.key),
                           entry.key.size(), kMaxKeyBytes);
  }
  encoder.PutString(entry.key);
  encoder.Put(static_cast<std::uint32_t>(TypeOf(entry.value)));
  return encoder.PutValue(entry.value).WithContext(fmt::format("key {}", Quoted(entry.key)));
}

// Offsets here count from where tensor data begins, as they do in the file.
Result<std::vector<TensorInfo>> LayOut(std::span<const TensorSpec> specs, std::uint64_t alignment) {
  std::vector<TensorInfo> tensors;
  tensors.reserve(specs.size());
  std::set<std::string_view> names;
  std::uint64_t next = 0;
  for (const TensorSpec& spec : specs) {
    if (spec.name.empty() || spec.name.size() > kMaxTensorNameBytes) {
      return InvalidArgument("tensor {}: a name of {} bytes, 1 to {} expected", Quoted(spec.name),
                             spec.name.size(), kMaxTensorNameBytes);
    }
    if (!names.insert(spec.name).second) {
      return InvalidArgument("tensor {}: a second one of that name", Quoted(spec.name));
    }
    const Result<Bytes> bytes = SizeOfTensor(spec);
    if (!bytes.ok()) {
      return Status(bytes.status()).WithContext(fmt::format("tensor {}", Quoted(spec.name)));
    }
    tensors.push_back({spec, *bytes, 0, next});
    // Files are addressed by signed numbers; below that limit nothing here can wrap.
    constexpr std::uint64_t kMaxFile = std::numeric_limits<std::int64_t>::max() / 2;
    if (bytes->count() > kMaxFile - next) {
      return InvalidArgument("tensor {}: its {} bytes make the file larger than {}",
                             Quoted(spec.name), bytes->count(), ToString(Bytes(kMaxFile)));
    }
    next = AlignUp(next + bytes->count(), alignment);
  }
  return tensors;
}

}  // namespace

Result<EncodedHeader> EncodeHeader(const Metadata& metadata, std::span<const TensorSpec> specs) {
  EncodedHeader header;
  TROUPE_ASSIGN_OR_RETURN(header.alignment, AlignmentOf(metadata));
  TROUPE_ASSIGN_OR_RETURN(header.tensors, LayOut(specs, header.alignment));

  Encoder encoder;
  encoder.PutBytes(std::as_bytes(std::span(kMagic)));
  encoder.Put(kWrittenVersion);
  encoder.Put(std::uint64_t{specs.size()});
  encoder.Put(std::uint64_t{metadata.entries().size()});
  for (const Metadata::Entry& entry : metadata.entries()) {
    TROUPE_RETURN_IF_ERROR(PutEntry(entry, encoder));
  }
  for (const TensorInfo& tensor : header.tensors) {
    encoder.PutString(tensor.name);
    encoder.Put(tensor.rank);
    for (std::uint32_t d = 0; d < tensor.rank; ++d) encoder.Put(tensor.dims[d]);
    encoder.Put(static_cast<std::uint32_t>(tensor.type));
    encoder.Put(tensor.offset);
  }
  header.bytes = std::move(encoder.bytes());
  if (header.bytes.size() > kMaxHeaderBytes.count()) {
    return InvalidArgument("keys and tensor names of {}, at most {} allowed",
                           ToString(Bytes(header.bytes.size())), ToString(kMaxHeaderBytes));
  }

  const std::uint64_t data_offset = AlignUp(header.bytes.size(), header.alignment);
  std::uint64_t end = data_offset;
  for (TensorInfo& tensor : header.tensors) {
    tensor.offset += data_offset;
    end = AlignUp(tensor.offset + tensor.bytes.count(), header.alignment);
  }
  header.total = Bytes(end);
  return header;
}

}  // namespace troupe
