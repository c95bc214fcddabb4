// What the batcher needs of an engine: memory for sequences, and passes over rows of several of
// them. The engine behind it is engine_runner.h's; tests have a toy model (fake_runner_for_test.h).
#pragma once

#include <troupe/state.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "expert/pass_facts.h"
#include "model/expert_source.h"
#include "runtime/embedding_sum.h"
#include "runtime/row_visitor.h"
#include "text/draft/draft_model.h"
#include "text/sampler.h"
#include "text/vocab.h"

namespace troupe {

struct RunnerLimits {
  std::uint32_t rows = 1;       // of a pass
  std::uint32_t sequences = 1;  // at a time
  std::uint32_t context = 1;    // tokens of a sequence, at most
  // Tokens of a prompt that others find in the prefix cache at a time, once a sequence has read
  // them; 0: none ever.
  std::uint32_t cache_page = 0;
  std::uint32_t guesses = 64 << 10;    // of a pass; 0: it may not have any
  bool guesses_behind_prompts = true;  // or behind decodes alone
  // Of an encoder-decoder: the token that its decoder begins with. What a prompt has before the
  // first one is the encoder's, at least one token. It is read in one pass, together with that one:
  // at most longest_encoded tokens.
  std::optional<TokenId> decoder_start = {};
  std::uint32_t longest_encoded = 0;
  bool exact = true;           // all rows are answered exactly
  bool reads_experts = false;  // some are read when they are needed
};

// Consecutive tokens of one sequence that are to go through the layers. A sequence is in a pass
// once at most.
struct PassRows {
  SequenceId sequence = 0;
  RequestId request = 0;
  std::span<const TokenId> tokens;
  Phase phase = Phase::kDecode;
  bool exact = false;         // answered exactly even where the engine may lose quality
  bool wants_logits = false;  // of the last token
  // The last tokens, that are a draft's: they are checked by what follows each, which somebody
  // wants.
  std::uint32_t guessed = 0;
  // Is given what the last layer makes of each token, if it is not null.
  EmbeddingSum* embedding = nullptr;
  RowVisitor on_row = {};                       // sees the logits of every token
  const std::atomic<bool>* unwanted = nullptr;  // as RowGroup's
};

// What a request wants a sequence for.
struct SequenceAsk {
  std::span<const TokenId> prompt;
  std::size_t tokens = 0;  // that it may come to, at most the context
  bool exact = false;      // as in its rows
  bool reads_all = false;  // every token is to go through the layers, whatever others have read
  // It shares what is read with sequences of the same alone.
  std::string_view salt = {};
  // Tokens that other prompts may begin with as well, and then go on otherwise; 0: not known.
  std::size_t common = 0;
};

// A sequence that was reserved, and the tokens of its prompt that it begins with.
struct ReservedSequence {
  SequenceId id = 0;
  std::size_t cached = 0;
};

// What the rows of one request have cost in a pass, and in those before it that failed.
struct RowsCost {
  std::uint64_t expert_uses = 0;  // (token, layer, expert) triples
  ExpertUsage experts;
};

// What is kept for sequences to come, in tokens.
struct PrefixCacheState {
  std::size_t kept = 0;        // whole pages, as all
  std::size_t idle = 0;        // of these: that no sequence has
  std::size_t free = 0;        // that nobody has
  std::size_t page = 0;        // of a page
  std::size_t most = 0;        // if no sequence held any
  std::uint64_t given_up = 0;  // to make room, since the beginning

  bool operator==(const PrefixCacheState&) const = default;
};

class PassRunner {
 public:
  virtual ~PassRunner() = default;

  virtual RunnerLimits limits() const = 0;

  // A number that no other request has. Any thread.
  virtual RequestId NewRequest() = 0;
  // The request is over, however it ended: what it has cost since costs() said so last.
  virtual ExpertUsage EndRequest(RequestId request) = 0;

  // A sequence with memory, which is never taken away from it. It holds those tokens that its
  // prompt begins with and that other sequences have read, but never all of the prompt: somebody
  // wants the logits of its last token. None: not as long as others hold their memory.
  virtual std::optional<ReservedSequence> Reserve(const SequenceAsk& ask) = 0;
  // The same for a sequence that is still reading its prompt: takes over what others have read
  // since then, and gives how many tokens that was.
  virtual std::size_t TakeCached(SequenceId sequence, std::span<const TokenId> prompt) = 0;
  virtual void Release(SequenceId sequence) = 0;

  // Appends the rows to their sequences. On an error every sequence is as before; kCancelled: all
  // rows have become unwanted meanwhile.
  virtual Status Run(std::span<const PassRows> rows) = 0;

  // Of the last token of a sequence that wanted logits in the last Run; valid until the next.
  virtual std::span<const float> Logits(SequenceId sequence) const = 0;
  // Of the last Run: what follows the first `guesses` of those that a group has, 0: its sure
  // tokens. Valid until the next call.
  virtual std::span<const float> LogitsAfterGuesses(std::size_t group, std::size_t guesses) = 0;
  // After a Run with guesses, and before anything else: how many of each group's stay in its
  // sequence.
  virtual void KeepGuesses(std::span<const std::uint32_t> right) = 0;
  // For drawing tokens between passes: one for all requests.
  virtual SamplerScratch& sampler_scratch() = 0;
  // A model that guesses tokens, driven between passes as well; null: there is none.
  virtual DraftModel* draft_model() { return nullptr; }
  // Guesses for a sequence by the experts in memory alone, driven between passes as well: tokens of
  // its text that it has not read yet, which are forgotten again. Null: there is nothing to gain.
  virtual std::unique_ptr<DraftSequence> DraftByResidents(SequenceId /*sequence*/,
                                                          RequestId /*request*/) {
    return nullptr;
  }
  // The same by a head of the model's own. Null: it has none.
  virtual std::unique_ptr<DraftSequence> DraftByHead(SequenceId /*sequence*/) { return nullptr; }
  // Of the last Run, an entry for each of its rows' groups.
  virtual std::span<const RowsCost> costs() const = 0;
  virtual PrefixCacheState prefix_cache() const = 0;

  // Hits and asks of each layer since the engine was opened, whoever's; empty if all experts are in
  // memory.
  virtual std::vector<LayerHits> layer_hits() const { return {}; }

  virtual CardState card() const { return {}; }

  // Where the experts are between two passes, for those who watch: nobody need ask. Empty if there
  // are none.
  virtual ExpertMap LookAtExperts() { return {}; }
};

}  // namespace troupe
