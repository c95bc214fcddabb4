// Any bytes give a trace's blocks, counted damage or an error, without a crash, a leak, a read past
// the end or a large allocation. What is accepted is valid, and comes back when it is written
// again. As no fuzzer finds a checksum, each input is also tried with those it needs.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "base/check.h"
#include "trace/trace_chunk.h"
#include "trace/trace_reader.h"

namespace troupe {
namespace {

constexpr std::size_t kJsonBytesAt = 12, kJsonChecksumAt = 16;
constexpr std::uint64_t kMostRaw = 1 << 20;  // larger ones only make the fuzzer slow

void CheckBlock(const TraceHeader& header, const TraceBlock& block) {
  TROUPE_CHECK(Validate(header, block).ok());
  if (RawChunkBytes(header, block.tokens, block.segments.size(), 0) > kMostRaw) return;
  const std::vector<std::byte> bytes = EncodeTraceChunk(header, block, 7);
  const auto chunk =
      DecodeChunkHeader(header, std::span(bytes).first(sizeof(TraceChunkHeader))).value();
  const auto again =
      DecodeChunkPayload(header, chunk, std::span(bytes).subspan(sizeof(TraceChunkHeader)));
  TROUPE_CHECK(again.ok() && *again == block);
}

void ReadAll(std::span<const std::byte> bytes) {
  auto reader = TraceReader::Create(std::make_unique<SpanSource>("fuzz", bytes));
  if (!reader.ok()) {
    TROUPE_CHECK(reader.status().message().find('\n') == std::string::npos);
    return;
  }
  TROUPE_CHECK(Validate(reader->header()).ok());
  std::uint64_t tokens = 0;
  while (true) {
    const auto block = reader->Next();
    TROUPE_CHECK(block.ok());
    if (!*block) break;
    CheckBlock(reader->header(), **block);
    tokens += (*block)->tokens;
  }
  TROUPE_CHECK(tokens == reader->tokens());
  TROUPE_CHECK(reader->damage().bytes <= bytes.size());
  TROUPE_CHECK(reader->damage().any() || reader->damage().bytes == 0);
}

// With the checksums of the header and of every chunk that begins anywhere put right.
std::vector<std::byte> Sealed(std::span<const std::byte> bytes) {
  std::vector<std::byte> sealed(bytes.begin(), bytes.end());
  if (sealed.size() < kTraceFrontBytes) return sealed;
  std::uint32_t json = 0;
  std::memcpy(&json, sealed.data() + kJsonBytesAt, sizeof(json));
  json = static_cast<std::uint32_t>(std::min<std::size_t>(json, sealed.size() - kTraceFrontBytes));
  std::memcpy(sealed.data() + kJsonBytesAt, &json, sizeof(json));
  const std::uint64_t sum = TraceChecksum(std::span(sealed).subspan(kTraceFrontBytes, json));
  std::memcpy(sealed.data() + kJsonChecksumAt, &sum, sizeof(sum));
  const auto magic = std::as_bytes(std::span(kChunkMagic));
  std::span<std::byte> rest = std::span(sealed).subspan(kTraceFrontBytes + json);
  while (true) {
    const auto found = std::search(rest.begin(), rest.end(), magic.begin(), magic.end());
    rest = rest.subspan(static_cast<std::size_t>(found - rest.begin()));
    if (rest.size() < sizeof(TraceChunkHeader)) return sealed;
    SealTraceChunk(rest);
    rest = rest.subspan(magic.size());
  }
}

}  // namespace
}  // namespace troupe

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  troupe::ReadAll(bytes);
  troupe::ReadAll(troupe::Sealed(bytes));
  return 0;
}
