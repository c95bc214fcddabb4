// Reads a routing trace from beginning to end, a chunk at a time: memory does not grow with the
// trace. A damaged chunk is skipped and counted; only a file whose header is damaged cannot be
// read. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "io/byte_source.h"
#include "trace/trace_block.h"
#include "trace/trace_chunk.h"
#include "trace/trace_header.h"

namespace troupe {

struct TraceDamage {
  std::uint64_t places = 0;  // in the file
  std::uint64_t bytes = 0;   // that were skipped
  std::uint64_t tokens = 0;  // that are known to be missing; what the end had is not known
  std::string first;         // what was found at the first place
  bool cut_short = false;    // there is no end mark: what came after the last chunk is missing

  bool any() const { return places > 0; }
  bool operator==(const TraceDamage&) const = default;
};

// "3 damaged places: 1204 bytes skipped, 512 tokens lost; the first: byte 8172: …", or what is
// missing at the end.
std::string ToString(const TraceDamage& damage);

class TraceReader {
 public:
  static Result<TraceReader> Open(const std::string& path);
  static Result<TraceReader> Create(std::unique_ptr<ByteSource> file);

  const TraceHeader& header() const { return header_; }
  std::string_view name() const { return file_->name(); }
  std::uint64_t file_bytes() const { return file_->size(); }
  std::uint64_t position() const { return at_; }  // where the next chunk is looked for

  // The next chunk that is intact; none at the end. Fails only if the file cannot be read.
  Result<std::optional<TraceBlock>> Next();
  // Whether tokens are missing between the last block and the one before.
  bool after_gap() const { return after_gap_; }
  std::uint64_t chunks() const { return chunks_; }
  std::uint64_t tokens() const { return tokens_; }  // in the blocks so far
  const TraceDamage& damage() const { return damage_; }

  void Rewind();

 private:
  explicit TraceReader(std::unique_ptr<ByteSource> file) : file_(std::move(file)) {}
  Status ReadHeader();
  Result<std::optional<TraceBlock>> ReadChunkHere();
  Status SkipToChunk();
  void TakeEnd(const TraceChunkHeader& end);
  void NoteDamage(std::uint64_t at, const std::string& what);

  std::unique_ptr<ByteSource> file_;
  TraceHeader header_;
  std::uint64_t first_chunk_ = 0;
  std::uint64_t at_ = 0;
  std::uint64_t next_token_ = 0;  // that the next chunk should begin with
  bool in_damage_ = false;
  bool ended_ = false;  // the end mark has been read
  bool after_gap_ = false;
  std::uint64_t chunks_ = 0, tokens_ = 0;
  TraceDamage damage_;
};

}  // namespace troupe
