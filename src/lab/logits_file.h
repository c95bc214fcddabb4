// Logits of a text, saved so that another run can be compared with them: what `troupe eval
// --logits` writes and `--reference` reads. Format: docs/formats/logits.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "io/atomic_file.h"
#include "io/file.h"

namespace troupe {

class LogitsWriter {
 public:
  static Result<LogitsWriter> Create(const std::string& path, std::uint32_t vocabulary);

  // The logits from which `token` was, or would have been, predicted.
  Status Append(std::int32_t token, std::span<const float> logits);
  // The file appears under its name now, and not before.
  Status Finish();

 private:
  LogitsWriter(AtomicFileWriter file, std::uint32_t vocabulary)
      : file_(std::move(file)), vocabulary_(vocabulary) {}

  AtomicFileWriter file_;
  std::uint32_t vocabulary_;
  std::vector<std::int32_t> tokens_;
};

class LogitsReader {
 public:
  static Result<LogitsReader> Open(const std::string& path);
  // And takes its name away: it may be large, and is gone with the program however that ends.
  static Result<LogitsReader> OpenAndUnlink(const std::string& path);

  std::uint32_t vocabulary() const { return vocabulary_; }
  std::span<const std::int32_t> tokens() const { return tokens_; }
  const std::string& path() const { return file_.path(); }
  // `logits` is as long as the vocabulary.
  Status Read(std::size_t row, std::span<float> logits) const;

 private:
  LogitsReader(ReadFile file, std::uint32_t vocabulary, std::vector<std::int32_t> tokens)
      : file_(std::move(file)), vocabulary_(vocabulary), tokens_(std::move(tokens)) {}

  ReadFile file_;
  std::uint32_t vocabulary_;
  std::vector<std::int32_t> tokens_;
};

}  // namespace troupe
