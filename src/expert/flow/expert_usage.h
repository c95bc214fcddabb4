// What experts cost a run: sums since a source was made, which can be added and subtracted. An ask
// is one layer needing one expert for some rows. Who of several requests pays is usage_ledger.h's
// part.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "expert/cache/expert_cache.h"

namespace troupe {

struct CacheUse {
  std::uint64_t hits = 0;    // asks that found the expert in memory
  std::uint64_t misses = 0;  // asks that did not
  // The rows of these asks: (row, slot) pairs, of which one ask of a batch can hold many.
  std::uint64_t use_hits = 0;
  std::uint64_t use_misses = 0;
  double deciding_seconds = 0;  // which slots are substituted, and which experts leave the cache

  double HitRate() const {
    const std::uint64_t asks = hits + misses;
    return asks == 0 ? 1.0 : static_cast<double>(hits) / static_cast<double>(asks);
  }
};

struct ReadUse {
  std::uint64_t reads = 0;  // handed to the system
  std::uint64_t bytes_read = 0;
  // With at least one read under way; one that has ended counts until the loop comes by.
  double reading_seconds = 0;
  double stall_seconds = 0;  // in which there was nothing to compute before a load ended
};

// Answers that are not exact; none unless somebody allowed them.
struct LossyUse {
  std::uint64_t low_copies = 0;       // asks that a copy of lower precision answered
  std::uint64_t low_assignments = 0;  // the (row, slot) pairs among them
  std::uint64_t substituted = 0;      // slots that another expert answered
  std::uint64_t dropped = 0;          // slots that nothing answered

  // Slots that were not answered by the expert that the router chose, at its full precision.
  std::uint64_t NotExact() const { return substituted + dropped + low_assignments; }
};

struct PrefetchUse {
  // Loads begun ahead of a question, and what became of them: there when asked for, asked for while
  // on their way, called off before all was read, evicted or failed unasked; or still waiting to be
  // asked for, of which there may be fewer in the end than in the beginning.
  std::uint64_t prefetches = 0;
  std::uint64_t prefetch_useful = 0;
  std::uint64_t prefetch_late = 0;
  std::uint64_t prefetch_cancelled = 0;
  std::uint64_t prefetch_wasted = 0;
  std::int64_t prefetch_waiting = 0;
  // Asks of layers that a guess was made for, and those of them that it held; some of these as what
  // would be chosen if the guess were right, not only as likely further ones.
  std::uint64_t asks_after_guess = 0;
  std::uint64_t guessed = 0;
  std::uint64_t expected = 0;
  // Experts left out of guesses as others may answer for them: in every guess that might have held
  // them, of which a layer may have several.
  std::uint64_t left_out = 0;
};

struct ExpertUsage : CacheUse, ReadUse, LossyUse, PrefetchUse {
  std::vector<LayerHits> layers = {};  // of hits and misses together; empty if all are in memory

  ExpertUsage Since(const ExpertUsage& before) const;
  ExpertUsage& operator+=(const ExpertUsage& part);  // of the same source
  ExpertUsage& operator-=(const ExpertUsage& part);
};

// What a sum is divided by where several requests share a pass.
enum class ShareBy { kHits, kMisses, kLowCopies, kSubstituted, kDropped };

// Every sum of one beside the other's: change(share_by, sum, other's sum). The bindings must name
// every member, so that none can be forgotten.
template <typename Change>
void ForEachSum(ExpertUsage& usage, const ExpertUsage& other, Change change) {
  const auto each = [&change](ShareBy by, auto... pairs) {
    (change(by, *pairs.first, *pairs.second), ...);
  };
  auto& [hits, misses, use_hits, use_misses, deciding] = static_cast<CacheUse&>(usage);
  each(ShareBy::kHits, std::pair(&hits, &other.hits), std::pair(&use_hits, &other.use_hits));
  each(ShareBy::kMisses, std::pair(&misses, &other.misses),
       std::pair(&use_misses, &other.use_misses), std::pair(&deciding, &other.deciding_seconds));
  auto& [reads, bytes, reading, stall] = static_cast<ReadUse&>(usage);
  each(ShareBy::kMisses, std::pair(&reads, &other.reads), std::pair(&bytes, &other.bytes_read),
       std::pair(&reading, &other.reading_seconds), std::pair(&stall, &other.stall_seconds));
  auto& [low, low_rows, substituted, dropped] = static_cast<LossyUse&>(usage);
  each(ShareBy::kLowCopies, std::pair(&low, &other.low_copies),
       std::pair(&low_rows, &other.low_assignments));
  each(ShareBy::kSubstituted, std::pair(&substituted, &other.substituted));
  each(ShareBy::kDropped, std::pair(&dropped, &other.dropped));
  auto& [loads, useful, late, cancelled, wasted, waiting, asks, guessed, expected, left_out] =
      static_cast<PrefetchUse&>(usage);
  each(ShareBy::kMisses, std::pair(&loads, &other.prefetches),
       std::pair(&useful, &other.prefetch_useful), std::pair(&late, &other.prefetch_late),
       std::pair(&cancelled, &other.prefetch_cancelled), std::pair(&wasted, &other.prefetch_wasted),
       std::pair(&waiting, &other.prefetch_waiting), std::pair(&asks, &other.asks_after_guess),
       std::pair(&guessed, &other.guessed), std::pair(&expected, &other.expected),
       std::pair(&left_out, &other.left_out));
}

}  // namespace troupe
