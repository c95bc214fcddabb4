// Writes a routing trace, a chunk at a time. Recorded while a model runs, every chunk is in the
// file as soon as it is full, so that a run that is killed leaves all but its last tokens; made
// from other files, the whole appears under its name or nothing does. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "trace/trace_block.h"
#include "trace/trace_header.h"

namespace troupe {

// Where a trace's bytes go.
class TraceSink {
 public:
  virtual ~TraceSink() = default;
  virtual Status Append(std::span<const std::byte> bytes) = 0;
  virtual Status Finish() = 0;
};

// Replaces a file of that name at once; what was appended stays, whatever happens next. "-" is
// standard output.
Result<std::unique_ptr<TraceSink>> GrowingFile(const std::string& path);
// Replaces a file of that name on Finish, or never.
Result<std::unique_ptr<TraceSink>> WholeFile(const std::string& path);

struct TraceWriterOptions {
  // A chunk is written when it has this number of tokens, or of bytes before packing. Larger chunks
  // pack better, smaller ones lose less.
  std::uint32_t chunk_tokens = 256;
  std::uint64_t chunk_bytes = 1 << 20;
};

class TraceWriter {
 public:
  // Writes the header.
  static Result<TraceWriter> Create(std::unique_ptr<TraceSink> sink, TraceHeader header,
                                    const TraceWriterOptions& options = {});

  // The next tokens. An error says what is wrong with the block, and nothing of it is written, or
  // that the file cannot be written to.
  Status Append(TraceBlock block);
  // What waits for its chunk to fill, as a chunk.
  Status Flush();
  // Marks the end, by which readers know that nothing is missing. Once, as the last thing.
  Status Finish();

  const TraceHeader& header() const { return header_; }
  std::uint64_t tokens() const { return tokens_; }

 private:
  TraceWriter(std::unique_ptr<TraceSink> sink, TraceHeader header,
              const TraceWriterOptions& options);
  std::uint32_t TokensThatFit() const;

  std::unique_ptr<TraceSink> sink_;
  TraceHeader header_;
  TraceWriterOptions options_;
  std::vector<TraceBlock> waiting_;
  std::uint32_t waiting_tokens_ = 0;
  std::uint64_t tokens_ = 0;   // appended
  std::uint64_t written_ = 0;  // of them in chunks
};

}  // namespace troupe
