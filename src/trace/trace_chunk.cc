#include "trace/trace_chunk.h"

#include <xxhash.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>

#include "base/half.h"
#include "base/printable.h"

namespace troupe {
namespace {

constexpr std::string_view kFileMagic = "TRPTRACE";
constexpr int kLevel = 3;

struct FileFront {
  char magic[8];
  std::uint32_t version;
  std::uint32_t json_bytes;
  std::uint64_t checksum;
};
static_assert(sizeof(FileFront) == kTraceFrontBytes);

struct SegmentRecord {
  std::uint32_t sequence, position, tokens;
  std::uint16_t domain;
  std::uint8_t phase, joins;
};
static_assert(sizeof(SegmentRecord) == 16);

std::uint64_t IdBytes(const TraceHeader& header) { return header.experts <= 256 ? 1 : 2; }
std::uint64_t ScoreBytes(const TraceHeader& header) {
  return header.score_type == ScoreType::kF16 ? 2 : 4;
}

bool HasPlaces(const TraceHeader& header) { return header.sequences > 1; }

class Packer {
 public:
  explicit Packer(std::size_t bytes) { out_.reserve(bytes); }
  void Put(const void* data, std::size_t size) {
    const auto* bytes = static_cast<const std::byte*>(data);
    out_.insert(out_.end(), bytes, bytes + size);
  }
  std::span<const std::byte> bytes() const { return out_; }

 private:
  std::vector<std::byte> out_;
};

class Unpacker {
 public:
  explicit Unpacker(std::span<const std::byte> bytes) : left_(bytes) {}
  void Take(void* to, std::size_t size) {
    TROUPE_CHECK(size <= left_.size());
    if (size > 0) std::memcpy(to, left_.data(), size);
    left_ = left_.subspan(size);
  }
  std::string_view TakeText(std::size_t size) {
    TROUPE_CHECK(size <= left_.size());
    const std::string_view text(reinterpret_cast<const char*>(left_.data()), size);
    left_ = left_.subspan(size);
    return text;
  }

 private:
  std::span<const std::byte> left_;
};

void PackScores(ScoreType type, const std::vector<float>& scores, Packer& to) {
  if (type == ScoreType::kF32) return to.Put(scores.data(), scores.size() * sizeof(float));
  std::vector<std::uint16_t> halves(scores.size());
  std::ranges::transform(scores, halves.begin(), FloatToHalf);
  to.Put(halves.data(), halves.size() * sizeof(std::uint16_t));
}

std::vector<float> UnpackScores(ScoreType type, std::size_t count, Unpacker& from) {
  std::vector<float> scores(count);
  if (type == ScoreType::kF32) {
    from.Take(scores.data(), count * sizeof(float));
    return scores;
  }
  std::vector<std::uint16_t> halves(count);
  from.Take(halves.data(), count * sizeof(std::uint16_t));
  std::ranges::transform(halves, scores.begin(), HalfToFloat);
  return scores;
}

std::uint64_t HeaderChecksum(const TraceChunkHeader& chunk) {
  return XXH3_64bits(&chunk, offsetof(TraceChunkHeader, checksum));
}

}  // namespace

std::uint64_t TraceChecksum(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::uint64_t RawChunkBytes(const TraceHeader& header, std::uint64_t tokens, std::uint64_t segments,
                            std::uint64_t domain_bytes) {
  std::uint64_t a_token = header.top_k * IdBytes(header);
  if (header.scores != ScoreKind::kNone) a_token += header.top_k * ScoreBytes(header);
  if (header.all_scores) a_token += header.experts * ScoreBytes(header);
  const std::uint64_t a_place = HasPlaces(header) ? sizeof(TraceSegment::place) : 0;
  return segments * (sizeof(SegmentRecord) + a_place) + domain_bytes +
         tokens * header.moe_layers.size() * a_token;
}

std::vector<std::byte> EncodeTraceHeader(const TraceHeader& header) {
  const std::string json = ToJson(header);
  const auto bytes = std::as_bytes(std::span(json));
  FileFront front{.magic = {},
                  .version = kTraceVersion,
                  .json_bytes = static_cast<std::uint32_t>(json.size()),
                  .checksum = TraceChecksum(bytes)};
  std::ranges::copy(kFileMagic, front.magic);
  Packer packer(sizeof(front) + json.size());
  packer.Put(&front, sizeof(front));
  packer.Put(json.data(), json.size());
  return {packer.bytes().begin(), packer.bytes().end()};
}

Result<TraceFront> DecodeTraceFront(std::span<const std::byte> bytes) {
  TROUPE_CHECK(bytes.size() == sizeof(FileFront));
  FileFront front;
  std::memcpy(&front, bytes.data(), sizeof(front));
  if (std::string_view(front.magic, sizeof(front.magic)) != kFileMagic) {
    return InvalidArgument("no routing trace: it does not begin with {}", kFileMagic);
  }
  if (front.version != kTraceVersion) {
    return Error(Code::kUnimplemented, "a routing trace of version {}, expected {}", front.version,
                 kTraceVersion);
  }
  if (front.json_bytes > kMaxTraceHeader.count()) {
    return DataLoss("byte 12: a header of {} bytes, at most {} expected", front.json_bytes,
                    kMaxTraceHeader.count());
  }
  return TraceFront{.json_bytes = front.json_bytes, .checksum = front.checksum};
}

std::vector<std::byte> EncodeTraceChunk(const TraceHeader& header, const TraceBlock& block,
                                        std::uint64_t first_token) {
  std::size_t domain_bytes = 0;
  for (const std::string& domain : block.domains) domain_bytes += domain.size() + 1;
  const std::uint64_t raw =
      RawChunkBytes(header, block.tokens, block.segments.size(), domain_bytes);
  TROUPE_CHECK(raw <= kMaxTraceChunk.count());
  Packer packer(raw);
  for (const TraceSegment& s : block.segments) {
    const SegmentRecord record{s.sequence,
                               s.position,
                               s.tokens,
                               s.domain,
                               static_cast<std::uint8_t>(s.phase),
                               static_cast<std::uint8_t>(s.joins)};
    packer.Put(&record, sizeof(record));
  }
  for (const std::string& domain : block.domains) packer.Put(domain.c_str(), domain.size() + 1);
  for (const TraceSegment& s : block.segments) {
    if (HasPlaces(header)) packer.Put(&s.place, sizeof(s.place));
  }
  if (IdBytes(header) == 1) {
    const std::vector<std::uint8_t> narrow(block.ids.begin(), block.ids.end());
    packer.Put(narrow.data(), narrow.size());
  } else {
    packer.Put(block.ids.data(), block.ids.size() * sizeof(std::uint16_t));
  }
  PackScores(header.score_type, block.scores, packer);
  PackScores(header.score_type, block.all_scores, packer);
  TROUPE_CHECK(packer.bytes().size() == raw);

  std::vector<std::byte> chunk(sizeof(TraceChunkHeader) + ZSTD_compressBound(raw));
  const std::size_t packed =
      ZSTD_compress(chunk.data() + sizeof(TraceChunkHeader),
                    chunk.size() - sizeof(TraceChunkHeader), packer.bytes().data(), raw, kLevel);
  TROUPE_CHECK(ZSTD_isError(packed) == 0);
  chunk.resize(sizeof(TraceChunkHeader) + packed);
  TraceChunkHeader front{.magic = {},
                         .packed_bytes = static_cast<std::uint32_t>(packed),
                         .raw_bytes = static_cast<std::uint32_t>(raw),
                         .first_token = first_token,
                         .tokens = block.tokens,
                         .segments = static_cast<std::uint32_t>(block.segments.size()),
                         .domain_bytes = static_cast<std::uint32_t>(domain_bytes),
                         .zero = 0,
                         .payload_checksum = 0,
                         .checksum = 0};
  std::ranges::copy(kChunkMagic, front.magic);
  std::memcpy(chunk.data(), &front, sizeof(front));
  SealTraceChunk(chunk);
  return chunk;
}

std::vector<std::byte> EncodeTraceEnd(std::uint64_t tokens) {
  TraceChunkHeader front{};
  front.first_token = tokens;
  std::ranges::copy(kChunkMagic, front.magic);
  std::vector<std::byte> bytes(sizeof(front));
  std::memcpy(bytes.data(), &front, sizeof(front));
  SealTraceChunk(bytes);
  return bytes;
}

void SealTraceChunk(std::span<std::byte> chunk) {
  TROUPE_CHECK(chunk.size() >= sizeof(TraceChunkHeader));
  TraceChunkHeader front;
  std::memcpy(&front, chunk.data(), sizeof(front));
  const auto payload = chunk.subspan(sizeof(front));
  front.payload_checksum =
      TraceChecksum(payload.first(std::min<std::size_t>(front.packed_bytes, payload.size())));
  front.checksum = HeaderChecksum(front);
  std::memcpy(chunk.data(), &front, sizeof(front));
}

Result<TraceChunkHeader> DecodeChunkHeader(const TraceHeader& header,
                                           std::span<const std::byte> bytes) {
  TraceChunkHeader chunk;
  TROUPE_CHECK(bytes.size() == sizeof(chunk));
  std::memcpy(&chunk, bytes.data(), sizeof(chunk));
  if (std::string_view(chunk.magic, sizeof(chunk.magic)) != kChunkMagic) {
    return DataLoss("no chunk begins here");
  }
  if (chunk.checksum != HeaderChecksum(chunk)) {
    return DataLoss("a chunk's header does not have its checksum");
  }
  if (chunk.packed_bytes > kMaxTraceChunk.count() || chunk.raw_bytes > kMaxTraceChunk.count() ||
      chunk.raw_bytes != RawChunkBytes(header, chunk.tokens, chunk.segments, chunk.domain_bytes) ||
      chunk.first_token > (std::uint64_t{1} << 62)) {
    return DataLoss(
        "a chunk of {} tokens in {} segments from token {} on, {} bytes, {} packed: no "
        "chunk of this trace",
        chunk.tokens, chunk.segments, chunk.first_token, chunk.raw_bytes, chunk.packed_bytes);
  }
  return chunk;
}

Result<TraceBlock> DecodeChunkPayload(const TraceHeader& header, const TraceChunkHeader& chunk,
                                      std::span<const std::byte> packed) {
  TROUPE_CHECK(packed.size() == chunk.packed_bytes);
  if (TraceChecksum(packed) != chunk.payload_checksum) {
    return DataLoss("a chunk does not have its checksum");
  }
  std::vector<std::byte> raw(chunk.raw_bytes);
  const std::size_t size = ZSTD_decompress(raw.data(), raw.size(), packed.data(), packed.size());
  if (ZSTD_isError(size) != 0) return DataLoss("a chunk: {}", ZSTD_getErrorName(size));
  if (size != raw.size()) return DataLoss("a chunk of {} bytes, expected {}", size, raw.size());

  Unpacker unpacker(raw);
  TraceBlock block;
  block.tokens = chunk.tokens;
  block.segments.reserve(chunk.segments);
  for (std::uint32_t i = 0; i < chunk.segments; ++i) {
    SegmentRecord r;
    unpacker.Take(&r, sizeof(r));
    block.segments.push_back({.sequence = r.sequence,
                              .position = r.position,
                              .tokens = r.tokens,
                              .domain = r.domain,
                              .phase = static_cast<TracePhase>(r.phase),
                              .joins = r.joins != 0});
  }
  std::string_view names = unpacker.TakeText(chunk.domain_bytes);
  while (!names.empty()) {
    const std::size_t end = names.find('\0');
    if (end == std::string_view::npos) return DataLoss("a chunk with a domain without an end");
    block.domains.push_back(Printable(names.substr(0, end)));
    names.remove_prefix(end + 1);
  }
  for (TraceSegment& segment : block.segments) {
    if (HasPlaces(header)) unpacker.Take(&segment.place, sizeof(segment.place));
  }
  block.ids.resize(header.ChoicesOf(chunk.tokens));
  if (IdBytes(header) == 1) {
    std::vector<std::uint8_t> narrow(block.ids.size());
    unpacker.Take(narrow.data(), narrow.size());
    std::ranges::copy(narrow, block.ids.begin());
  } else {
    unpacker.Take(block.ids.data(), block.ids.size() * sizeof(std::uint16_t));
  }
  if (header.scores != ScoreKind::kNone) {
    block.scores = UnpackScores(header.score_type, block.ids.size(), unpacker);
  }
  if (header.all_scores) {
    block.all_scores = UnpackScores(
        header.score_type, header.moe_layers.size() * std::size_t{chunk.tokens} * header.experts,
        unpacker);
  }
  TROUPE_RETURN_IF_ERROR(Validate(header, block));
  return block;
}

}  // namespace troupe
