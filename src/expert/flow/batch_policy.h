// What goes into the next pass when several requests are under way. Every decoding request rides in
// every pass that has room for all of them; chunks of prompts fill the rest, cut by time and not by
// number of tokens, so that one long prompt does not make all others wait. Pure: requests and
// measured speeds in, rows out. Who runs the pass is runtime/batcher.h; a simulator may ask the
// same policy.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "expert/flow/row_speed.h"
#include "expert/pass_facts.h"

namespace troupe {

struct BatchLimits {
  std::uint32_t most_rows = 512;  // of a pass: what the workspace holds
  // That a pass with decodes in it should take. Without them nobody waits for its end, and a prompt
  // takes all rows.
  double target_seconds = 0.15;
  // Rows of prompts that are taken even if the target is missed, so that prompts go on beside any
  // number of decodes.
  std::uint32_t least_chunk = 16;
  // However short the target, prompts may take so many times of a pass what the least chunk takes:
  // its rows bring in most experts, and small chunks would pay for those in every pass.
  double most_chunks = 2;
  // Passes without a row after which a request comes before all that waited less, deadline or not.
  std::uint32_t most_passed_over = 64;
};

struct BatchCandidate {
  RequestId request = 0;
  Phase phase = Phase::kPrompt;
  std::uint32_t prompt_left = 0;  // tokens; of a prompt at least one
  // The first of these go into one pass together, or wait. At most all, and no more than decodes
  // leave of most_rows.
  std::uint32_t whole = 0;
  std::optional<Nanos> deadline;  // earlier ones first
  std::uint32_t passed_over = 0;  // passes since it last had a row
  // Tokens of a draft that would be checked behind its rows; of a prompt: behind its last token.
  std::uint32_t guesses = 0;
};

struct BatchRows {
  RequestId request = 0;
  Phase phase = Phase::kPrompt;
  std::uint32_t rows = 0;
  std::uint32_t guesses = 0;  // and as many rows more

  bool operator==(const BatchRows&) const = default;
};

struct BatchChoice {
  std::vector<BatchRows> rows;  // decodes first
  double predicted_seconds = 0;

  std::uint32_t RowsIn(Phase phase) const;  // without guesses
  bool operator==(const BatchChoice&) const = default;
};

// "3 decodes, prompt 7: 44 rows; 182.0 ms expected"
std::string ToString(const BatchChoice& choice);

// What rows of prompts take of a pass, by their number.
using RowSeconds = std::function<double(std::uint32_t rows)>;

// Rows of prompts that fit, of `most`, where others have that much of the target's time.
std::uint32_t PromptRowsBeside(double others_seconds, const RowSeconds& seconds, std::uint32_t most,
                               const BatchLimits& limits);

// `waiting` is in order of arrival. Prompts come in this order: those passed over too often, those
// with deadlines, the others; each takes as many rows as are left. More decodes than most_rows take
// turns, and leave a row to a prompt that waits. Guesses ride where rows are left by all decodes
// and by the least chunk of a prompt that waits.
BatchChoice ChooseBatch(std::span<const BatchCandidate> waiting, const RowSpeed& speed,
                        const BatchLimits& limits);

}  // namespace troupe
