// What one sequence has in a pass of the engine: tokens to be appended, and what is wanted of them.
#pragma once

#include <cstddef>
#include <optional>

#include "expert/pass_facts.h"
#include "model/batch.h"
#include "runtime/embedding_sum.h"
#include "runtime/row_visitor.h"

namespace troupe {

class Session;

enum class LogitsWanted {
  kNone,  // a piece of a prompt that is not its last
  kLast,  // afterwards Session::logits() is of the last token
  kAll    // the same, and on_row sees those of every token
};

struct SequenceRows {
  Session* sequence = nullptr;
  TokenIds tokens = {};
  Phase phase = Phase::kDecode;
  bool exact = false;                     // as RowGroupFacts::exact
  std::optional<RequestId> request = {};  // absent: the sequence's own
  // The last tokens that are a draft's, to be checked: at least one token comes before them. What
  // follows each is then asked for by Engine::LogitsAfterGuesses, and `wanted` is of no account.
  std::uint32_t guessed = 0;
  // The tokens only guess, by the experts in memory (PassFacts::drafts), and are forgotten before
  // the sequence is in another pass: Session::FeedByResidents.
  bool drafts = false;
  LogitsWanted wanted = LogitsWanted::kLast;
  std::size_t first_wanted = 0;  // with kAll: the first row that on_row sees
  RowVisitor on_row = {};
  EmbeddingSum* embedding = nullptr;            // is given what the last layer makes of each row
  std::size_t save_after = 0;                   // as RowGroup's
  const std::atomic<bool>* unwanted = nullptr;  // as RowGroup's
};

}  // namespace troupe
