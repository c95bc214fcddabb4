// What answers cost: sums that can be added and subtracted. An ask is one layer needing one expert
// for some rows of a pass, and a row is one token of one sequence.
#pragma once

#include <troupe/foresight.h>
#include <troupe/pass_time.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace troupe {

struct LayerHits {
  std::uint64_t hits = 0;
  std::uint64_t asks = 0;

  bool operator==(const LayerHits&) const = default;
};

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

// How it was decided to answer misses, one decision each: their sum is `misses`.
struct AnswerUse {
  std::uint64_t waited = 0;      // for a load that was under way
  std::uint64_t loaded = 0;      // in full
  std::uint64_t loaded_low = 0;  // in a copy of lower precision
  std::uint64_t elsewhere = 0;   // computed by another place
};

struct ReadUse {
  std::uint64_t reads = 0;  // handed to the system
  std::uint64_t bytes_read = 0;
  // With at least one read under way; one that has ended counts until the loop comes by.
  double reading_seconds = 0;
  double stall_seconds = 0;  // in which there was nothing to compute before a load ended
  // Experts whose bytes were found to be those that were recorded of them; each counts once.
  std::uint64_t verified = 0;
};

// Answers that are not exact; none unless somebody allowed them.
struct LossyUse {
  std::uint64_t low_copies = 0;       // asks that a copy of lower precision answered
  std::uint64_t low_assignments = 0;  // the (row, slot) pairs among them
  std::uint64_t substituted = 0;      // slots that another expert answered
  std::uint64_t dropped = 0;          // slots that nothing answered
  std::uint64_t peer_bf16 = 0;        // slots that a peer answered in bf16, or
  std::uint64_t peer_q8 = 0;          // in 8-bit codes
  // Slots that a group gate chose in place of the router. Most are what the router would choose, so
  // NotExact does not count them.
  std::uint64_t grouped = 0;

  // Slots that were not answered by the expert that the router chose, at its full precision.
  std::uint64_t NotExact() const {
    return substituted + dropped + low_assignments + peer_bf16 + peer_q8;
  }
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
  // Asks of layers while something reads ahead, also those that no guess was made for, and those of
  // them that a guess held; some of these as what would be chosen if the guess were right, not only
  // as likely further ones.
  std::uint64_t asks_after_guess = 0;
  std::uint64_t guessed = 0;
  std::uint64_t expected = 0;
  // Experts left out of guesses as others may answer for them: in every guess that might have held
  // them, of which a layer may have several.
  std::uint64_t left_out = 0;
  // Of the loads: begun for experts that a draft by the experts in memory had named, and of these,
  // asked for by the pass that followed.
  std::uint64_t draft_reads = 0;
  std::uint64_t draft_reads_used = 0;
  Foresight foresight = {};
};

// What a card answered, beside the asks that CacheUse counts.
struct CardUse {
  std::uint64_t card_hits = 0;      // asks that found the expert in the card's memory
  std::uint64_t card_rows = 0;      // rows that the card answered, of these and of what it was sent
  std::uint64_t card_copies = 0;    // experts copied into its memory
  std::uint64_t card_failures = 0;  // after the first one the processor goes on alone
};

// Where experts came from, and what that took. All zero if every expert is in memory.
struct ExpertUsage : CacheUse, AnswerUse, ReadUse, LossyUse, PrefetchUse, CardUse {
  std::vector<LayerHits> layers = {};  // of hits and misses together; empty if all are in memory

  ExpertUsage Since(const ExpertUsage& before) const;
  ExpertUsage& operator+=(const ExpertUsage& part);  // of the same model
  ExpertUsage& operator-=(const ExpertUsage& part);
};

// Beginnings of prompts that were found instead of being computed again. What is found is kept
// where no request holds memory, and gives way to those that ask for it.
struct PrefixCacheUse {
  std::uint64_t hits = 0;             // requests that found the beginning of their prompt
  std::uint64_t cached_tokens = 0;    // tokens that they found
  std::uint64_t given_up_tokens = 0;  // room for tokens, given up to requests
  std::size_t kept_tokens = 0;        // that there is room for in what is kept now
  std::size_t most_tokens = 0;        // and in all that there is for requests and this
};

// Who guesses tokens: the request, what the text has said before, a rule of the answer, a control
// of tests, somebody elsewhere while the answer is written, a draft model, the model itself by the
// experts in memory alone, and the model's own head.
enum class DraftSource : std::uint8_t {
  kExpected,
  kLookup,
  kGrammar,
  kControl,
  kOffered,
  kModel,
  kResident,
  kHead
};
inline constexpr std::size_t kDraftSources = 8;

constexpr std::string_view Name(DraftSource source) {
  constexpr std::string_view kSourceNames[kDraftSources] = {
      "expected", "lookup", "grammar", "control", "offered", "model", "resident", "head"};
  return kSourceNames[static_cast<std::size_t>(source)];
}

struct DraftedTokens {
  std::uint64_t drafted = 0;   // and checked
  std::uint64_t accepted = 0;  // of them: that the answer has

  bool operator==(const DraftedTokens&) const = default;
};

// Tokens that were guessed and checked several in a pass: the same answer, in fewer passes.
struct SpeculationUse {
  std::uint64_t checks = 0;    // passes that checked a draft
  std::uint64_t drafted = 0;   // tokens of these drafts
  std::uint64_t accepted = 0;  // of them: that the answer has
  double saved_seconds = 0;    // as measured; below 0: drafts have cost time
  // The same tokens, by who guessed them (DraftSource).
  std::array<DraftedTokens, kDraftSources> by_source = {};
  double drafting_seconds = 0;  // that a draft model took, or this one by residents or its head

  SpeculationUse& operator+=(const SpeculationUse& more) {
    checks += more.checks;
    drafted += more.drafted;
    accepted += more.accepted;
    saved_seconds += more.saved_seconds;
    for (std::size_t source = 0; source < kDraftSources; ++source) {
      by_source[source].drafted += more.by_source[source].drafted;
      by_source[source].accepted += more.by_source[source].accepted;
    }
    drafting_seconds += more.drafting_seconds;
    return *this;
  }
  bool operator==(const SpeculationUse&) const = default;
};

// What an answer took. Seconds from the moment that the request had its memory.
struct Usage {
  std::size_t prompt_tokens = 0;     // that were taken in: all, unless it was cancelled before
  std::size_t cached_tokens = 0;     // of these: found in the prefix cache, and not computed
  std::size_t generated_tokens = 0;  // with Request::begun, without the one that ended the answer
  std::size_t reasoning_tokens = 0;  // of these: where Request::reasoning says
  std::size_t decode_steps = 0;      // tokens chosen after the first
  double queue_seconds = 0;          // from the start to that moment
  double prefill_seconds = 0;        // to the last token of the prompt
  double first_token_seconds = 0;    // to the first token chosen
  double decode_seconds = 0;         // from the first token to the end
  double rule_seconds = 0;           // to find which tokens the request's rule allows
  double decode_pass_seconds = 0;    // the part of decode_seconds in which passes ran

  // (token, layer, expert) triples that the router chose, for tokens of drafts as well
  std::uint64_t expert_uses = 0;
  // Of passes that requests shared, this one's part.
  ExpertUsage experts;         // prompt and answer
  ExpertUsage decode_experts;  // the passes after the first token
  SpeculationUse speculation;

  // Of the passes after the first token.
  PassTime DecodePassTime() const {
    return SplitPassTime(decode_pass_seconds, decode_experts.reading_seconds,
                         decode_experts.stall_seconds);
  }

  double PrefillTokensPerSecond() const {
    return PerSecond(prompt_tokens - cached_tokens, prefill_seconds);
  }
  double DecodeTokensPerSecond() const { return PerSecond(decode_steps, decode_seconds); }
  // What speculation has made of the speed of the passes after the first token: above 1 it helped.
  double SpeculationUtility() const {
    return decode_pass_seconds > 0
               ? (decode_pass_seconds + speculation.saved_seconds) / decode_pass_seconds
               : 1;
  }

 private:
  static double PerSecond(std::size_t count, double seconds) {
    return seconds > 0 ? static_cast<double>(count) / seconds : 0;
  }
};

}  // namespace troupe
