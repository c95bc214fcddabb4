#include "trace/trace_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "io/file.h"

namespace troupe {

std::string ToString(const TraceDamage& damage) {
  constexpr std::string_view kCutShort = "ends without its end mark: later tokens are missing";
  std::string lost = damage.tokens > 0  ? fmt::format("{} tokens lost", damage.tokens)
                     : damage.cut_short ? std::string(kCutShort)
                                        : "no token known to be lost";
  if (damage.tokens > 0 && damage.cut_short) lost += fmt::format(", {}", kCutShort);
  if (damage.bytes == 0) {
    return damage.tokens > 0 && damage.cut_short ? fmt::format("{}; {}", damage.first, lost)
                                                 : damage.first;
  }
  return fmt::format("{} damaged place{}: {} bytes skipped, {}; the first: {}", damage.places,
                     damage.places == 1 ? "" : "s", damage.bytes, lost, damage.first);
}

Result<TraceReader> TraceReader::Open(const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(ReadFile file, ReadFile::Open(path));
  return Create(std::make_unique<ReadFile>(std::move(file)));
}

Result<TraceReader> TraceReader::Create(std::unique_ptr<ByteSource> file) {
  TraceReader reader(std::move(file));
  TROUPE_RETURN_IF_ERROR(reader.ReadHeader());
  return reader;
}

Status TraceReader::ReadHeader() {
  const std::string name(file_->name());
  if (file_->size() < kTraceFrontBytes) {
    return InvalidArgument("{}: {} bytes are no routing trace", name, file_->size());
  }
  std::vector<std::byte> front(kTraceFrontBytes);
  TROUPE_RETURN_IF_ERROR(file_->ReadAt(0, front));
  const Result<TraceFront> decoded = DecodeTraceFront(front);
  if (!decoded.ok()) return Status(decoded.status()).WithContext(name);
  std::vector<std::byte> json(
      std::min<std::uint64_t>(decoded->json_bytes, file_->size() - kTraceFrontBytes));
  TROUPE_RETURN_IF_ERROR(file_->ReadAt(kTraceFrontBytes, json));
  if (json.size() != decoded->json_bytes || TraceChecksum(json) != decoded->checksum) {
    return DataLoss("{}: byte {}: the header is damaged; without it the rest cannot be read", name,
                    kTraceFrontBytes);
  }
  TROUPE_ASSIGN_OR_RETURN(
      header_,
      TraceHeaderFromJson(name, {reinterpret_cast<const char*>(json.data()), json.size()}));
  first_chunk_ = kTraceFrontBytes + json.size();
  at_ = first_chunk_;
  return OkStatus();
}

void TraceReader::Rewind() {
  at_ = first_chunk_;
  next_token_ = 0;
  in_damage_ = after_gap_ = ended_ = false;
  chunks_ = tokens_ = 0;
  damage_ = {};
}

void TraceReader::NoteDamage(std::uint64_t at, const std::string& what) {
  if (in_damage_) return;  // what follows is the same place
  in_damage_ = true;
  if (++damage_.places == 1) damage_.first = fmt::format("byte {}: {}", at, what);
}

// A block; none if there is none here, and at_ has moved past what cannot be one or stands where it
// stood.
Result<std::optional<TraceBlock>> TraceReader::ReadChunkHere() {
  const std::uint64_t left = file_->size() - at_;
  if (left < sizeof(TraceChunkHeader)) {
    NoteDamage(at_, fmt::format("the file ends in a chunk, after {} bytes of it", left));
    damage_.bytes += left;
    at_ = file_->size();
    return std::optional<TraceBlock>();
  }
  std::vector<std::byte> bytes(sizeof(TraceChunkHeader));
  TROUPE_RETURN_IF_ERROR(file_->ReadAt(at_, bytes));
  const Result<TraceChunkHeader> chunk = DecodeChunkHeader(header_, bytes);
  if (!chunk.ok()) {
    NoteDamage(at_, chunk.status().message());
    return std::optional<TraceBlock>();
  }
  if (header_.ends && IsTraceEnd(*chunk)) {
    TakeEnd(*chunk);
    return std::optional<TraceBlock>();
  }
  if (chunk->packed_bytes > left - sizeof(TraceChunkHeader)) {
    NoteDamage(at_, fmt::format("the file ends in a chunk, after {} bytes of it", left));
    return std::optional<TraceBlock>();
  }
  if (chunk->first_token < next_token_) {
    NoteDamage(
        at_, fmt::format("a chunk from token {} on, expected {}", chunk->first_token, next_token_));
    return std::optional<TraceBlock>();
  }
  bytes.resize(chunk->packed_bytes);
  TROUPE_RETURN_IF_ERROR(file_->ReadAt(at_ + sizeof(TraceChunkHeader), bytes));
  Result<TraceBlock> block = DecodeChunkPayload(header_, *chunk, bytes);
  damage_.tokens += chunk->first_token - next_token_;
  const std::uint64_t expected = std::exchange(next_token_, chunk->first_token + chunk->tokens);
  after_gap_ = after_gap_ || chunk->first_token != expected;
  if (!block.ok()) {
    // Where it ends is not known either: bytes may be missing from it.
    NoteDamage(at_, block.status().message());
    damage_.tokens += chunk->tokens;
    after_gap_ = true;
    return std::optional<TraceBlock>();
  }
  if (chunk->first_token != expected) {  // chunks were cut out before it
    NoteDamage(at_,
               fmt::format("a chunk from token {} on, expected {}", chunk->first_token, expected));
  }
  at_ += sizeof(TraceChunkHeader) + bytes.size();
  return std::optional(std::move(*block));
}

// Tokens of chunks that were cut out right before it are known to be missing, too.
void TraceReader::TakeEnd(const TraceChunkHeader& end) {
  const std::uint64_t at = at_;
  at_ += sizeof(TraceChunkHeader);
  ended_ = true;
  in_damage_ = false;
  if (end.first_token > next_token_) {
    NoteDamage(at, fmt::format("the end of {} tokens, after {}", end.first_token, next_token_));
    damage_.tokens += end.first_token - next_token_;
    next_token_ = end.first_token;
  }
  if (at_ == file_->size()) return;
  in_damage_ = false;
  NoteDamage(at_, fmt::format("{} bytes behind the end", file_->size() - at_));
  damage_.bytes += file_->size() - at_;
  at_ = file_->size();
}

// From the next byte on; to the end if there is none.
Status TraceReader::SkipToChunk() {
  constexpr std::size_t kPiece = 1 << 16;
  const auto magic = std::as_bytes(std::span(kChunkMagic));
  std::uint64_t from = at_ + 1;
  while (file_->size() - from >= magic.size()) {
    std::vector<std::byte> piece(std::min<std::uint64_t>(kPiece, file_->size() - from));
    TROUPE_RETURN_IF_ERROR(file_->ReadAt(from, piece));
    const auto found = std::search(piece.begin(), piece.end(), magic.begin(), magic.end());
    if (found != piece.end()) {
      from += static_cast<std::uint64_t>(found - piece.begin());
      damage_.bytes += from - at_;
      at_ = from;
      return OkStatus();
    }
    from += piece.size() - (magic.size() - 1);
  }
  damage_.bytes += file_->size() - at_;
  at_ = file_->size();
  return OkStatus();
}

Result<std::optional<TraceBlock>> TraceReader::Next() {
  after_gap_ = false;
  while (at_ < file_->size()) {
    const std::uint64_t before = at_;
    TROUPE_ASSIGN_OR_RETURN(std::optional<TraceBlock> block, ReadChunkHere());
    if (block) {
      in_damage_ = false;
      ++chunks_;
      tokens_ += block->tokens;
      return block;
    }
    if (at_ == before) TROUPE_RETURN_IF_ERROR(SkipToChunk());
  }
  if (header_.ends && !ended_) {
    ended_ = true;
    damage_.cut_short = true;
    NoteDamage(at_,
               "ends without its end mark: later tokens are missing (the recording was ended by "
               "force, or the file was cut)");
  }
  return std::optional<TraceBlock>();
}

}  // namespace troupe
