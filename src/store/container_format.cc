#include "store/container_format.h"

#include <fmt/core.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "gguf/quoted.h"

namespace troupe {
namespace {

constexpr std::string_view kMagic = "TRPEXPRT";

// Little-endian, like every machine that Troupe runs on.
struct Header {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t panel_layout;
  std::array<std::uint64_t, 2> model;
  std::uint32_t experts;
  std::uint32_t precisions;
  std::uint32_t layers;
  std::uint32_t zero;
  std::uint64_t file_bytes;
  std::uint64_t checksum;  // of all bytes before the first expert, with this field as zero
};
static_assert(sizeof(Header) == 64);

struct LayerRecord {  // followed by the checksums of the layer's experts
  std::uint32_t layer;
  std::array<std::uint32_t, 3> types;
  std::uint64_t expert_bytes;
  std::uint64_t offset;
};
static_assert(sizeof(LayerRecord) == 32);

constexpr std::array<std::string_view, 3> kMatrixNames = {"gate", "up", "down"};

template <typename T>
T TakeFrom(std::span<const std::byte> bytes, std::uint64_t offset) {
  TROUPE_CHECK(offset <= bytes.size() && sizeof(T) <= bytes.size() - offset);
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

template <typename T>
void PutInto(std::span<std::byte> bytes, std::uint64_t offset, const T& value) {
  TROUPE_CHECK(offset <= bytes.size() && sizeof(T) <= bytes.size() - offset);
  std::memcpy(bytes.data() + offset, &value, sizeof(T));
}

std::uint64_t RecordBytes(std::uint64_t experts) {
  return sizeof(LayerRecord) + experts * sizeof(std::uint64_t);
}

// Cannot wrap: a product of three numbers below 2^32, two of them far below.
std::uint64_t IndexBytes(std::uint64_t precisions, std::uint64_t layers, std::uint64_t experts) {
  return sizeof(Header) + precisions * layers * RecordBytes(experts);
}

std::uint64_t ChecksumOfFront(std::span<const std::byte> front) {
  std::vector<std::byte> unsealed(front.begin(), front.end());
  PutInto(std::span(unsealed), offsetof(Header, checksum), std::uint64_t{0});
  return ContainerChecksum(unsealed);
}

class IndexReader {
 public:
  explicit IndexReader(const ByteSource& file) : file_(file) {}

  Result<ContainerIndex> Read();

 private:
  Status ReadHeader();
  Status CheckCount(std::uint64_t offset, std::string_view what, std::uint64_t found,
                    std::uint64_t most) const;
  Status ReadFront();
  Result<ContainerLayer> ReadLayer(std::uint64_t at) const;
  Status CheckPlace(const ContainerLayer& layer, std::uint64_t at, std::uint64_t next) const;

  template <typename... Args>
  Status Damaged(std::uint64_t offset, fmt::format_string<Args...> format, Args&&... args) const {
    return DataLoss("{}, byte {}: {}; {}", file_.name(), offset,
                    fmt::format(format, std::forward<Args>(args)...), kPackAgain);
  }

  const ByteSource& file_;
  Header header_ = {};
  std::vector<std::byte> front_;
};

Status IndexReader::CheckCount(std::uint64_t offset, std::string_view what, std::uint64_t found,
                               std::uint64_t most) const {
  if (found >= 1 && found <= most) return OkStatus();
  return Damaged(offset, "{} {}, 1 to {} expected", found, what, most);
}

// Checks in the order in which later checks rely on them: is it a container at all, is it complete,
// is its version known, and are its counts such that sizes computed from them cannot wrap.
Status IndexReader::ReadHeader() {
  std::array<std::byte, sizeof(Header)> bytes = {};
  const std::size_t there = std::min<std::uint64_t>(bytes.size(), file_.size());
  TROUPE_RETURN_IF_ERROR(file_.ReadAt(0, std::span(bytes).first(there)));
  header_ = TakeFrom<Header>(bytes, 0);
  const std::string_view magic(header_.magic.data(), std::min(there, header_.magic.size()));
  if (magic != kMagic) {
    return InvalidArgument("{}: begins with {}, '{}' expected: no experts container", file_.name(),
                           Quoted(magic), kMagic);
  }
  if (there < bytes.size()) {
    return Damaged(0, "a file of {} bytes, a header of {} expected: it was cut", there,
                   bytes.size());
  }
  if (header_.version != kContainerVersion) {
    return Error(Code::kFailedPrecondition,
                 "{}: {} version {} of the experts container, {} expected; {}", file_.name(),
                 header_.version < kContainerVersion ? "older" : "newer", header_.version,
                 kContainerVersion, kPackAgain);
  }
  TROUPE_RETURN_IF_ERROR(
      CheckCount(offsetof(Header, experts), "experts", header_.experts, kMaxContainerExperts));
  TROUPE_RETURN_IF_ERROR(
      CheckCount(offsetof(Header, precisions), "precisions", header_.precisions, 2));
  return CheckCount(offsetof(Header, layers), "layers", header_.layers, kMaxContainerLayers);
}

// Reads all bytes before the first expert and compares them with their checksum.
Status IndexReader::ReadFront() {
  const std::uint64_t index = IndexBytes(header_.precisions, header_.layers, header_.experts);
  if (index > kMaxContainerIndexBytes.count()) {
    return Damaged(offsetof(Header, experts), "an index of {}, at most {} expected",
                   ToString(Bytes(index)), ToString(kMaxContainerIndexBytes));
  }
  const std::uint64_t front = AlignUp(index, kContainerAlignment);
  if (front > file_.size()) {
    return Damaged(0, "a file of {} bytes, an index up to byte {} expected: it was cut",
                   file_.size(), front);
  }
  front_.resize(front);
  TROUPE_RETURN_IF_ERROR(file_.ReadAt(0, front_));
  const std::uint64_t checksum = ChecksumOfFront(front_);
  if (checksum != header_.checksum) {
    return Damaged(0, "the index has checksum {:016x}, {:016x} expected: it is damaged", checksum,
                   header_.checksum);
  }
  if (header_.zero != 0) {
    return Damaged(offsetof(Header, zero), "{}, 0 expected", header_.zero);
  }
  if (header_.file_bytes != file_.size()) {
    return Damaged(offsetof(Header, file_bytes), "a file of {} bytes, {} expected: it was {}",
                   file_.size(), header_.file_bytes,
                   file_.size() < header_.file_bytes ? "cut" : "added to");
  }
  return OkStatus();
}

// A hostile file can have a right checksum, so every value is still checked.
Result<ContainerLayer> IndexReader::ReadLayer(std::uint64_t at) const {
  const auto record = TakeFrom<LayerRecord>(front_, at);
  ContainerLayer layer = {
      .layer = record.layer, .expert_bytes = record.expert_bytes, .offset = record.offset};
  if (layer.layer >= kMaxContainerLayers) {
    return Damaged(at, "layer {}, at most {} expected", layer.layer, kMaxContainerLayers - 1);
  }
  for (std::size_t m = 0; m < layer.types.size(); ++m) {
    const TensorTypeInfo* type = FindTensorType(record.types[m]);
    if (type == nullptr) {
      return Damaged(at, "layer {}: the {} matrices have type {}, which is unknown", layer.layer,
                     kMatrixNames[m], record.types[m]);
    }
    layer.types[m] = type->type;
  }
  layer.checksums.resize(header_.experts);
  for (std::uint32_t e = 0; e < header_.experts; ++e) {
    layer.checksums[e] =
        TakeFrom<std::uint64_t>(front_, at + sizeof(LayerRecord) + e * sizeof(std::uint64_t));
  }
  return layer;
}

// `next` is where the previous experts end. Experts follow each other without gaps, so an offset
// has only one right value, and no two layers can overlap.
Status IndexReader::CheckPlace(const ContainerLayer& layer, std::uint64_t at,
                               std::uint64_t next) const {
  const std::uint64_t most = (file_.size() - next) / header_.experts;  // that an expert may take
  if (layer.expert_bytes == 0 || layer.expert_bytes > most || layer.Stride() > most) {
    return Damaged(at + offsetof(LayerRecord, expert_bytes),
                   "layer {}: experts of {} bytes, 1 to {} expected", layer.layer,
                   layer.expert_bytes, most);
  }
  if (layer.offset != next) {
    return Damaged(at + offsetof(LayerRecord, offset),
                   "layer {}: experts begin at byte {}, {} expected", layer.layer, layer.offset,
                   next);
  }
  return OkStatus();
}

Result<ContainerIndex> IndexReader::Read() {
  TROUPE_RETURN_IF_ERROR(ReadHeader());
  TROUPE_RETURN_IF_ERROR(ReadFront());
  ContainerIndex index = {.model = {header_.model},
                          .panel_layout = header_.panel_layout,
                          .experts = header_.experts,
                          .precisions = {}};
  std::uint64_t at = sizeof(Header), next = front_.size();
  for (std::uint32_t p = 0; p < header_.precisions; ++p) {
    std::vector<ContainerLayer>& layers = index.precisions.emplace_back();
    for (std::uint32_t l = 0; l < header_.layers; ++l) {
      TROUPE_ASSIGN_OR_RETURN(ContainerLayer layer, ReadLayer(at));
      if (l > 0 && layer.layer <= layers.back().layer) {
        return Damaged(at, "layer {} after layer {}", layer.layer, layers.back().layer);
      }
      if (p > 0 && layer.layer != index.precisions[0][l].layer) {
        return Damaged(at, "layer {} in the second precision, {} expected", layer.layer,
                       index.precisions[0][l].layer);
      }
      TROUPE_RETURN_IF_ERROR(CheckPlace(layer, at, next));
      next += layer.Stride() * header_.experts;
      at += RecordBytes(header_.experts);
      layers.push_back(std::move(layer));
    }
  }
  if (next != file_.size()) {
    return Damaged(next, "the last expert ends here, {} expected", file_.size());
  }
  return index;
}

}  // namespace

std::uint64_t ContainerChecksum(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::uint64_t ContainerDataOffset(const ContainerIndex& index) {
  return AlignUp(IndexBytes(index.precisions.size(), index.precisions.at(0).size(), index.experts),
                 kContainerAlignment);
}

std::uint64_t PlaceExperts(ContainerIndex& index) {
  std::uint64_t next = ContainerDataOffset(index);
  for (std::vector<ContainerLayer>& layers : index.precisions) {
    for (ContainerLayer& layer : layers) {
      layer.offset = next;
      next += layer.Stride() * index.experts;
    }
  }
  return next;
}

std::vector<std::byte> EncodeContainerIndex(const ContainerIndex& index) {
  TROUPE_CHECK(!index.precisions.empty() && !index.precisions[0].empty());
  const ContainerLayer& last = index.precisions.back().back();
  Header header = {.version = kContainerVersion,
                   .panel_layout = index.panel_layout,
                   .model = index.model.words,
                   .experts = index.experts,
                   .precisions = static_cast<std::uint32_t>(index.precisions.size()),
                   .layers = static_cast<std::uint32_t>(index.precisions[0].size()),
                   .zero = 0,
                   .file_bytes = last.OffsetOf(index.experts),
                   .checksum = 0};
  kMagic.copy(header.magic.data(), header.magic.size());
  std::vector<std::byte> front(ContainerDataOffset(index));
  PutInto(std::span(front), 0, header);
  std::uint64_t at = sizeof(Header);
  for (const std::vector<ContainerLayer>& layers : index.precisions) {
    TROUPE_CHECK(layers.size() == header.layers);
    for (const ContainerLayer& layer : layers) {
      TROUPE_CHECK(layer.checksums.size() == index.experts);
      LayerRecord record = {.layer = layer.layer,
                            .types = {},
                            .expert_bytes = layer.expert_bytes,
                            .offset = layer.offset};
      for (std::size_t m = 0; m < layer.types.size(); ++m) {
        record.types[m] = static_cast<std::uint32_t>(layer.types[m]);
      }
      PutInto(std::span(front), at, record);
      std::memcpy(front.data() + at + sizeof(record), layer.checksums.data(),
                  layer.checksums.size() * sizeof(std::uint64_t));
      at += RecordBytes(index.experts);
    }
  }
  SealContainerIndex(front);
  return front;
}

void SealContainerIndex(std::span<std::byte> front) {
  PutInto(front, offsetof(Header, checksum), ChecksumOfFront(front));
}

Result<ContainerIndex> ReadContainerIndex(const ByteSource& file) {
  return IndexReader(file).Read();
}

}  // namespace troupe
