// What drafts by the model itself would be worth, with the experts that are in memory alone: the
// next tokens are guessed without reading anything, then checked exactly in one pass, which reads
// what it needs and so refreshes the cache. Measures how many guesses are right, by how far ahead
// they are, what a check reads against the same tokens one by one, and how many of its reads the
// draft's own routes have named. docs/reports/speculation.md has what came of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/status.h"
#include "lab/lossy_switch.h"
#include "runtime/session.h"

namespace troupe {

struct ResidentDraftOptions {
  std::size_t tokens = 64;  // of each answer, greedy
  std::size_t length = 4;   // of a draft
};

struct ResidentDrafts {
  std::size_t tokens = 0;            // generated, without the first of each answer
  std::vector<std::uint64_t> tried;  // by how far ahead: guesses whose forerunners were right
  std::vector<std::uint64_t> right;  // of these
  std::uint64_t checks = 0;
  double draft_seconds = 0, check_seconds = 0;
  double plain_seconds = 0;  // of the same answers, one token a pass
  ExpertUsage check, plain;  // what these passes asked for and read
  std::uint64_t named = 0;   // experts that a check had to load and the draft had chosen

  double TokensPerCheck() const {
    return checks == 0 ? 0 : static_cast<double>(tokens) / static_cast<double>(checks);
  }
  // Of the time without drafts: as measured, one after the other; and if all that the draft named
  // were read while it is drawn up, which nothing can beat.
  double Speedup() const { return plain_seconds / (draft_seconds + check_seconds); }
  double MostSpeedup() const;
};

// The prompts are not empty and leave room for the answers. `experts` is of the session's engine,
// which is exact afterwards. kInternal: a check has not given the plain answer.
Result<ResidentDrafts> DraftByResidents(Session& session, Engine& engine, LossySwitch& experts,
                                        const std::vector<std::vector<TokenId>>& prompts,
                                        const ResidentDraftOptions& options,
                                        const std::function<void(std::size_t done)>& progress = {});

}  // namespace troupe
