// Which tokens of a vocabulary may come next in a text that a matcher follows: exactly those whose
// bytes its Accept would take. Not thread-safe: one serves the requests of one thread, of which
// those with the same grammar share what was found.
//
// What a token may be depends on the place in the grammar and, for the few tokens that go past the
// end of the rule there, on the stack below it. So the tree of tokens is walked once for each
// place, and what is kept is the tokens that fit and the nodes of the tree at which the rule may
// have ended; from these the walk goes on with the real stack. Counters of repetitions that one
// token cannot exhaust are one place.
//
// A mask may take a limited work: steps through the tree, and stacks looked at. It is counted as if
// nothing had been found before, so that whether an answer fails depends on its text and grammar
// alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "text/grammar/mask_memory.h"
#include "text/grammar/matcher.h"
#include "text/grammar/stack_states.h"
#include "text/grammar/vocab_trie.h"
#include "text/token_set.h"

namespace troupe {

struct TokenMaskLimits {
  Bytes kept = 32_MiB;             // what was found for places, the least recently used go first
  std::size_t states_kept = 4096;  // dropped beyond this number before the next mask
  std::size_t states_at_most = 65536;  // kResourceExhausted beyond
  Bytes states_bytes = 256_MiB;        // the same; half of it is dropped before the next mask
  StackLimits stacks = {};             // of the matcher of an answer (token_constraint.h)
  // Of a mask; kResourceExhausted beyond. A step to a node of the tree is 1, and one from stack to
  // stack kStackWork.
  std::uint64_t work = 1'000'000'000;
  std::uint64_t work_a_node = 0;  // and for each node of the tree of tokens
};

class TokenMasks {
 public:
  static constexpr std::uint64_t kStackWork = 8;

  // `shared`: the memory that it has together with others; null: it has `limits` for itself.
  TokenMasks(std::shared_ptr<const Automaton> automaton, std::shared_ptr<const VocabTrie> vocab,
             TokenMaskLimits limits = {}, std::shared_ptr<MaskMemory> shared = nullptr);
  ~TokenMasks();
  TokenMasks(const TokenMasks&) = delete;
  TokenMasks& operator=(const TokenMasks&) = delete;

  // Of tokens with text; end tokens are not among them. The matcher must be one of `automaton`.
  Result<TokenSet> Allowed(const Matcher& matcher);

  const std::shared_ptr<const Automaton>& automaton() const { return automaton_; }
  const std::shared_ptr<const VocabTrie>& vocab() const { return vocab_; }
  const TokenMaskLimits& limits() const { return limits_; }
  Bytes found_bytes() const { return kept_ + states_.bytes(); }
  // Drops all that was found, as if nothing had been asked yet.
  void Forget();
  std::size_t places_kept() const { return places_.size(); }
  std::uint64_t places_walked() const { return places_walked_; }
  std::uint64_t work() const { return work_; }  // of the last mask

 private:
  using Place = std::array<std::uint32_t, 3>;  // node and counters
  using TrieNodes = std::vector<std::uint32_t>;

  struct Found {
    TokenSet allowed;
    TrieNodes ends;             // where the rule may have ended
    bool ends_at_once = false;  // without another byte
    std::uint64_t last_use = 0;
    std::uint64_t work = 0;
    Bytes size() const {  // with its place in the map
      return Bytes(128 + allowed.bytes() + ends.capacity() * sizeof(std::uint32_t));
    }
  };

  Place PlaceOf(const StackCell& cell) const;
  Result<const Found*> FindAt(const Place& place);
  // The tokens below these nodes of the tree, or of all of it, from a place. `ends`: the nodes
  // where the rule may have ended are added. Whether it fails depends on these alone.
  Result<bool> Walk(const Place& place, std::optional<std::span<const std::uint32_t>> nodes,
                    TokenSet& allowed, TrieNodes& ends);
  Result<bool> WalkOnce(const Place& place, std::optional<std::span<const std::uint32_t>> nodes,
                        TokenSet& allowed, TrieNodes& ends);
  Status WalkRange(std::uint32_t begin, std::uint32_t end, StackStates::State state,
                   TokenSet& allowed, TrieNodes& ends);
  std::uint64_t MostWork() const { return limits_.work + limits_.work_a_node * vocab_->size(); }
  Status Spend(std::uint64_t work);
  void DropLeastRecentlyUsed();

  std::shared_ptr<const Automaton> automaton_;
  std::shared_ptr<const VocabTrie> vocab_;
  TokenMaskLimits limits_;
  std::shared_ptr<MaskMemory> shared_;
  StackStates states_;
  std::map<Place, Found> places_;
  Bytes kept_;
  std::uint64_t uses_ = 0;
  std::uint64_t places_walked_ = 0;
  std::uint64_t work_ = 0;
  struct Open {
    StackStates::State state;
    std::uint32_t end;
  };
  std::vector<Open> open_;  // the nodes around the one that Walk is at
};

}  // namespace troupe
