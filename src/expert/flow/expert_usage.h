// What experts cost a run (troupe/usage.h), sum by sum: sums since a source was made. Who of
// several requests pays is usage_ledger.h's part.
#pragma once

#include <troupe/usage.h>

#include <utility>

namespace troupe {

// What a sum is divided by where several requests share a pass.
enum class ShareBy { kHits, kMisses, kLowCopies, kSubstituted, kDropped, kPeerBf16, kPeerInt8 };

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
  auto& [reads, bytes, reading, stall, verified] = static_cast<ReadUse&>(usage);
  each(ShareBy::kMisses, std::pair(&reads, &other.reads), std::pair(&bytes, &other.bytes_read),
       std::pair(&reading, &other.reading_seconds), std::pair(&stall, &other.stall_seconds),
       std::pair(&verified, &other.verified));
  auto& [waited, loaded, loaded_low, elsewhere] = static_cast<AnswerUse&>(usage);
  each(ShareBy::kMisses, std::pair(&waited, &other.waited), std::pair(&loaded, &other.loaded),
       std::pair(&loaded_low, &other.loaded_low), std::pair(&elsewhere, &other.elsewhere));
  auto& [low, low_rows, substituted, dropped, bf16, q8, grouped] = static_cast<LossyUse&>(usage);
  each(ShareBy::kLowCopies, std::pair(&low, &other.low_copies),
       std::pair(&low_rows, &other.low_assignments));
  // No source counts what groups chose: who adds it knows whose it is, and nothing is divided.
  each(ShareBy::kSubstituted, std::pair(&substituted, &other.substituted),
       std::pair(&grouped, &other.grouped));
  each(ShareBy::kDropped, std::pair(&dropped, &other.dropped));
  each(ShareBy::kPeerBf16, std::pair(&bf16, &other.peer_bf16));
  each(ShareBy::kPeerInt8, std::pair(&q8, &other.peer_q8));
  auto& [loads, useful, late, cancelled, wasted, waiting, asks, guessed, expected, left_out,
         draft_reads, draft_reads_used, foresight] = static_cast<PrefetchUse&>(usage);
  each(ShareBy::kMisses, std::pair(&loads, &other.prefetches),
       std::pair(&useful, &other.prefetch_useful), std::pair(&late, &other.prefetch_late),
       std::pair(&cancelled, &other.prefetch_cancelled), std::pair(&wasted, &other.prefetch_wasted),
       std::pair(&waiting, &other.prefetch_waiting), std::pair(&asks, &other.asks_after_guess),
       std::pair(&guessed, &other.guessed), std::pair(&expected, &other.expected),
       std::pair(&left_out, &other.left_out), std::pair(&draft_reads, &other.draft_reads),
       std::pair(&draft_reads_used, &other.draft_reads_used));
  auto& [card_hits, card_rows, card_copies, card_failures] = static_cast<CardUse&>(usage);
  each(ShareBy::kHits, std::pair(&card_hits, &other.card_hits),
       std::pair(&card_rows, &other.card_rows));
  each(ShareBy::kMisses, std::pair(&card_copies, &other.card_copies),
       std::pair(&card_failures, &other.card_failures));
  auto& [needed, named, likely, in_time, from] = foresight;
  const Foresight& their = other.foresight;
  each(ShareBy::kMisses, std::pair(&needed, &their.needed), std::pair(&named, &their.named),
       std::pair(&likely, &their.likely), std::pair(&in_time, &their.in_time));
  for (std::size_t i = 0; i < from.size(); ++i) {
    auto& [its_named, its_likely, guesses, came_true] = from[i];
    each(ShareBy::kMisses, std::pair(&its_named, &their.from[i].named),
         std::pair(&its_likely, &their.from[i].likely), std::pair(&guesses, &their.from[i].guesses),
         std::pair(&came_true, &their.from[i].came_true));
  }
}

}  // namespace troupe
