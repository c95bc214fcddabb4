// For `troupe bench`: how fast several sequences decode in shared passes, beside a prompt that is
// read in chunks of as many rows, and the speed that memory and disk would allow. What happens when
// requests come and go is bench_join.h's part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/status.h"
#include "runtime/engine.h"
#include "text/vocab.h"

namespace troupe {

struct BatchWork {
  std::size_t sequences = 1;
  std::size_t prompt = 1;  // tokens of each sequence before the decode
  std::size_t decode = 1;  // tokens of each sequence that are timed
  std::size_t reps = 1;
};

struct BatchSpeed {
  std::size_t sequences = 0;
  std::vector<double> tokens_per_s;         // of all sequences, a value for each repetition
  std::vector<double> prompt_tokens_per_s;  // the same tokens, in chunks of one sequence's prompt

  // Of the passes that decode, on average.
  double experts_a_pass = 0;         // different ones: (layer, expert) pairs
  double prompt_experts_a_pass = 0;  // the same of the prompt's chunks
  double weight_bytes = 0;           // dense weights and each of these experts once
  double attended_bytes = 0;         // keys and values of all sequences
  double read_bytes = 0;             // from the disk
  // Over everything that was timed; 0 if nothing was read.
  double disk_bytes_per_s = 0;
};

// `length` tokens from `first` on; after the last token the text begins anew.
std::vector<TokenId> TextWindow(TokenIds text, std::size_t first, std::size_t length);

// A first, untimed repetition counts the experts of every pass; `tick` is called after each timed
// one. REQUIRES: the engine holds as many sequences, of prompt + max(decode, sequences) tokens.
Result<BatchSpeed> TimeBatch(Engine& engine, TokenIds text, const BatchWork& work,
                             const std::function<void()>& tick);

// Tokens a second if a pass took no longer than reading its weights from memory, or what it misses
// from the disk, whichever is slower. `with_attended`: and what its sequences attend to.
double LimitTokensPerSecond(const BatchSpeed& speed, double memory_bytes_per_s,
                            double disk_bytes_per_s, bool with_attended);

}  // namespace troupe
