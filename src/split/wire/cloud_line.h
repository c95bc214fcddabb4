// What a cloud says while it chooses an answer: a line for some tokens, for nothing (it lives), for
// how long the answer still waits, that it takes the rows of a cut prompt, for the end, or for why
// there will be none. Pure. The format is docs/formats/end-cloud.md's.
#pragma once

#include <troupe/request.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"
#include "split/wire/cloud_load.h"

namespace troupe {

struct CloudTokens {
  std::vector<TokenId> tokens;  // none: it lives, and has begun

  bool operator==(const CloudTokens&) const = default;
};

// It has not begun: others are before it.
struct CloudWait {
  double seconds = 0;  // as is expected

  bool operator==(const CloudWait&) const = default;
};

struct CloudEnd {
  FinishReason reason = FinishReason::kLength;
  // What it took there.
  std::size_t read = 0;       // tokens that were read, and not found
  double queue_seconds = 0;   // before it began
  double read_seconds = 0;    // up to the first token
  double decode_seconds = 0;  // from there
  CloudLoad load;             // of then

  bool operator==(const CloudEnd&) const = default;
};

struct CloudFailure {
  Status status;

  bool operator==(const CloudFailure&) const = default;
};

// Of a prompt that is cut by layers: its rows may come.
struct CloudReady {
  bool operator==(const CloudReady&) const = default;
};

using CloudLine = std::variant<CloudTokens, CloudWait, CloudEnd, CloudFailure, CloudReady>;

// With its line break.
std::string Encode(const CloudLine& line);
std::string EncodeTokens(std::span<const TokenId> tokens);
// Without it.
Result<CloudLine> DecodeCloudLine(std::string_view text);

// The cloud's text, without what would break a line of a log.
std::string InOneLine(std::string text);

// Cuts what comes into lines, however it is cut on its way.
class CloudLines {
 public:
  // The lines that are complete now; kDataLoss: one is longer than any line may be.
  Result<std::vector<std::string>> Take(std::string_view piece);

 private:
  std::string rest_;
};

}  // namespace troupe
