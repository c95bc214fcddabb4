// The model left to itself: greedy answers, exact and not, to the same prompts. Teacher forcing
// shows what one token loses where all before it are right; here a token that differs changes all
// that follow. How good the inexact text is, the exact model says.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "base/status.h"
#include "lab/intervals.h"
#include "lab/lossy_switch.h"
#include "runtime/session.h"
#include "text/vocab.h"

namespace troupe {

struct LoopOptions {
  std::size_t tokens = 64;  // generated after each prompt; tokens that end an answer do not
};

// After one prompt.
struct LoopAnswer {
  std::vector<TokenId> exact, lossy;
  std::size_t same = 0;          // places at which both have the same token
  std::size_t first_change = 0;  // how many are the same before one differs: all if none does
  double exact_nll = 0;          // of each text under the exact model, nats a token
  double lossy_nll = 0;
};

// A prompt is a block of its own in the intervals (intervals.h).
struct LoopComparison {
  std::vector<LoopAnswer> answers;
  std::size_t unchanged = 0;  // answers that are the same throughout
  Interval same_tokens;       // share
  Interval first_change;      // in tokens; of unchanged answers their length
  Interval exact_nll, lossy_nll;
  Interval nll_change;  // of the lossy text less the exact one
  ExpertUsage usage;    // by the lossy answers alone, prompts included
};

// The prompts are not empty and leave room for the answers. `experts` is of the session's engine,
// which is exact afterwards.
Result<LoopComparison> CompareInTheLoop(Session& session, LossySwitch& experts,
                                        const std::vector<std::vector<TokenId>>& prompts,
                                        const LoopOptions& options,
                                        const std::function<void(std::size_t done)>& progress = {});

// Compares the texts of an answer and notes what is the same.
void NoteSame(LoopAnswer& answer);

// `count` pieces of `length` tokens from all over a text, `begin` before each if there is one.
Result<std::vector<std::vector<TokenId>>> PromptsFrom(std::span<const TokenId> text,
                                                      std::size_t count, std::size_t length,
                                                      std::optional<TokenId> begin);

}  // namespace troupe
