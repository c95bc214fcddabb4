// Keys and values that sequences have left behind, found again by those that begin with the same
// tokens: a tree in which each node is a page of a KvPool and the tokens it holds, so that a path
// from the root is how a text begins. It takes no memory of its own: it keeps pages that nobody
// asks for, and gives up those that were not used for longest when the pool runs short. What is
// found is to the byte what would be computed, since that depends on the tokens alone; sequences
// whose answers may lose quality must therefore have a cache of their own. Texts with different
// salts have nothing in common, whatever their tokens. Threads: one at a time, the pool's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/batch.h"
#include "model/kv_pool.h"

namespace troupe {

struct PrefixCounters {
  std::uint64_t taken = 0;     // pages, by sequences that went on in them
  std::uint64_t given_up = 0;  // pages, because the pool ran short
};

class PrefixCache {
  struct Node;

 public:
  // The pool must outlive it.
  explicit PrefixCache(KvPool& pool) : pool_(&pool) {}

  // Goes on with what is known of a sequence whose tokens these are, from its first position that
  // is not filled: shares full pages, and copies the beginning of the one after them if the
  // sequence has room for that. Gives how many positions it filled.
  std::size_t Extend(KvSequence& sequence, TokenIds tokens, std::string_view salt = {}) {
    return Extend(sequence, tokens, salt, /*takes=*/false);
  }
  // The same, but takes that last page itself out of the cache if nobody else has it: for a
  // sequence without pages of its own yet, where the pool has too few to hold both.
  std::size_t ExtendByTaking(KvSequence& sequence, TokenIds tokens, std::string_view salt = {}) {
    return Extend(sequence, tokens, salt, /*takes=*/true);
  }

  // With how many of these tokens a text began whose pages it has.
  std::size_t KnownOf(TokenIds tokens, std::string_view salt = {}) const;

  // Keeps the pages of a sequence, whose filled positions hold these tokens: the full ones, and, of
  // a sequence that has ended, the last one as well.
  enum class Keeping { kFullPages, kAll };
  void Keep(KvSequence& sequence, TokenIds tokens, Keeping which, std::string_view salt = {});

  // Lets go of pages that no sequence has, those that were not used for longest first, ends of
  // texts before their beginnings. Gives how many; fewer only if there are no more.
  std::size_t GiveUp(std::size_t pages);
  std::size_t Idle() const;  // pages that no sequence has

  // What it keeps without a salt, for who writes it down: pages of beginnings come before those
  // behind them.
  struct Kept {
    static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
    std::size_t behind;  // which of them it goes on behind; kNone: it begins a text
    TokenIds tokens;
    const KvPage* page;
    std::uint64_t used;  // the more, the later
  };
  std::vector<Kept> All() const;
  // Puts such pages into an empty cache, in that order.
  class Filling {
   public:
    explicit Filling(PrefixCache& cache) : cache_(cache) {}
    void Put(std::size_t behind, TokenIds tokens, KvPage page, std::uint64_t used);

   private:
    PrefixCache& cache_;
    std::vector<Node*> put_;
  };

  std::size_t pages() const { return pages_; }
  // Grows whenever All would tell of other tokens or pages; not when they are only used.
  std::uint64_t changes() const { return changes_; }
  const PrefixCounters& counters() const { return counters_; }

 private:
  struct Node {
    std::vector<TokenIds::value_type> tokens;  // a page of them; fewer only at the end of a text
    KvPage page;
    std::uint64_t used = 0;
    std::vector<std::unique_ptr<Node>> next = {};
  };
  using Nodes = std::vector<std::unique_ptr<Node>>;
  struct Step {
    Node* node = nullptr;    // null: none begins with the first token
    std::size_t common = 0;  // tokens that the page and the text begin with
  };

  std::size_t Extend(KvSequence& sequence, TokenIds tokens, std::string_view salt, bool takes);
  void ForgetEmptySalts();
  static Step Longest(const Nodes& nodes, TokenIds tokens);
  // The list that holds the leaf which was not used for longest, and its place there.
  struct Place {
    Nodes* nodes = nullptr;
    std::size_t at = 0;
  };
  static void FindOldest(Nodes& nodes, Place& oldest);
  static std::size_t IdleIn(const Nodes& nodes);
  static void AddAll(const Nodes& nodes, std::size_t behind, std::vector<Kept>& all);

  KvPool* pool_;
  std::map<std::string, Nodes, std::less<>> roots_;  // by salt; none is empty between two calls
  std::uint64_t clock_ = 0;
  std::size_t pages_ = 0;
  std::uint64_t changes_ = 0;
  PrefixCounters counters_;
};

}  // namespace troupe
