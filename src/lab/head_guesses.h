// How often the model's own head (model/next_token_head.h) guesses what the model then answers, and
// what its guesses and their checks take. Every token is guessed, and every other one is checked
// beside its guesses, whether that pays or not; so the figures say what drafts of a length are
// worth, and nothing of what the governor makes of them. docs/reports/speculation.md has some.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/status.h"
#include "runtime/engine.h"
#include "text/sampler.h"

namespace troupe {

struct HeadGuessOptions {
  std::size_t tokens = 128;  // of each answer
  std::size_t length = 1;    // of a draft
  Sampling sampling = {};    // of answers and guesses; each prompt has a seed of its own
};

struct HeadGuesses {
  std::size_t tokens = 0;            // answered
  std::vector<std::uint64_t> tried;  // by how far ahead: guesses whose forerunners were right
  std::vector<std::uint64_t> right;  // of these
  std::uint64_t drafts = 0, checks = 0, plain = 0;  // what the times are of; plain: passes of one
  double draft_seconds = 0, check_seconds = 0, plain_seconds = 0;

  // What a check yields, if every token is guessed: itself, and what was right behind it.
  double TokensPerCheck() const;
  // In passes of one token: having a draft, and checking it.
  double DraftCost() const { return Mean(draft_seconds, drafts) / Mean(plain_seconds, plain); }
  double CheckCost() const { return Mean(check_seconds, checks) / Mean(plain_seconds, plain); }
  // Of the speed without drafts.
  double Speedup() const { return TokensPerCheck() / (DraftCost() + CheckCost()); }

 private:
  static double Mean(double seconds, std::uint64_t count) {
    return count == 0 ? 0 : seconds / static_cast<double>(count);
  }
};

// The prompts are not empty and leave room for the answers and a draft. kInvalidArgument: the
// engine has no head that drafts.
Result<HeadGuesses> GuessByHead(Engine& engine, const std::vector<std::vector<TokenId>>& prompts,
                                const HeadGuessOptions& options,
                                const std::function<void(std::size_t done)>& progress = {});

}  // namespace troupe
