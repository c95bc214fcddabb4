// What a run says at its end, on stderr: one sentence with what it did and how fast, then the
// figures behind it, a line for each kind. Every line is in brackets, which tells it from the text.
#pragma once

#include <troupe/usage.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/bytes.h"

namespace troupe {

struct RunFigures {
  std::size_t tokens = 0;  // of the answer
  std::string ended;       // why: "length"
  Usage usage;
  Bytes peak;  // memory of the process
  // Experts in memory, of all; 0 where every one is.
  std::uint32_t slots = 0, experts = 0;
  std::string gate;  // the groups that chose experts in the router's place
};

// The sentence, without its line end.
std::string RunSentence(const RunFigures& figures);
// What was not computed exactly; empty where all was. Each line with its end, as below.
std::string RunLossLines(const RunFigures& figures);
// Prompt, drafts, experts, a token's time and prefetches.
std::string RunDetailLines(const RunFigures& figures);

}  // namespace troupe
