// The bytes of a trace file (docs/formats/trace.md): its front, and chunks that can be read each
// without the others. Whoever reads a chunk's header knows how long it is and whether it is intact
// before anything is unpacked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "trace/trace_block.h"
#include "trace/trace_header.h"

namespace troupe {

inline constexpr std::uint32_t kTraceVersion = 1;
inline constexpr std::string_view kChunkMagic = "TRPCHUNK";
inline constexpr std::size_t kTraceFrontBytes = 24;  // before the header's JSON
inline constexpr Bytes kMaxTraceHeader = 4_MiB;
// Of a chunk, packed or not. Writers stay far below it.
inline constexpr Bytes kMaxTraceChunk = 64_MiB;

std::vector<std::byte> EncodeTraceHeader(const TraceHeader& header);

struct TraceFront {
  std::uint32_t json_bytes = 0;
  std::uint64_t checksum = 0;
};
// Of the file's first kTraceFrontBytes; the error does not name the file.
Result<TraceFront> DecodeTraceFront(std::span<const std::byte> front);

// As in the file. Little-endian, like every machine that Troupe runs on.
struct TraceChunkHeader {
  char magic[8];
  std::uint32_t packed_bytes;
  std::uint32_t raw_bytes;
  std::uint64_t first_token;  // tokens of all chunks before
  std::uint32_t tokens;
  std::uint32_t segments;
  std::uint32_t domain_bytes;
  std::uint32_t zero;
  std::uint64_t payload_checksum;
  std::uint64_t checksum;  // of the bytes before
};
static_assert(sizeof(TraceChunkHeader) == 56);

// Header and payload. The block is valid.
std::vector<std::byte> EncodeTraceChunk(const TraceHeader& header, const TraceBlock& block,
                                        std::uint64_t first_token);

// What stands behind the last chunk: the front of a chunk of no tokens.
std::vector<std::byte> EncodeTraceEnd(std::uint64_t tokens);
inline bool IsTraceEnd(const TraceChunkHeader& chunk) {
  return chunk.tokens == 0 && chunk.segments == 0 && chunk.packed_bytes == 0;
}

// Checks magic, checksum, and sizes against each other and the trace's shape.
Result<TraceChunkHeader> DecodeChunkHeader(const TraceHeader& header,
                                           std::span<const std::byte> bytes);
Result<TraceBlock> DecodeChunkPayload(const TraceHeader& header, const TraceChunkHeader& chunk,
                                      std::span<const std::byte> packed);
// Writes the checksums that the bytes need into a chunk, whatever else is wrong with it; for tests.
void SealTraceChunk(std::span<std::byte> chunk);

std::uint64_t TraceChecksum(std::span<const std::byte> bytes);
// What a chunk of these numbers of tokens, segments and bytes of domains unpacks to.
std::uint64_t RawChunkBytes(const TraceHeader& header, std::uint64_t tokens, std::uint64_t segments,
                            std::uint64_t domain_bytes);

}  // namespace troupe
