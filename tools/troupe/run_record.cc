#include "troupe/run_record.h"

#include <algorithm>
#include <cmath>

#include "expert/prefetch/worth_prefetch.h"
#include "expert/substitution/quality_limit.h"
#include "kernels/target.h"
#include "machine/process_memory.h"
#include "text/sampler.h"
#include "troupe/counted.h"
#include "troupe/foresight_figures.h"
#include "troupe/remark.h"

namespace troupe {

namespace {

// Tokens that were checked, and those that were right, by who guessed them.
Json DraftersJson(const SpeculationUse& drafts) {
  Json by_drafter;
  for (std::size_t source = 0; source < kDraftSources; ++source) {
    const auto& [drafted, accepted] = drafts.by_source[source];
    by_drafter[std::string(Name(static_cast<DraftSource>(source)))] =
        Json{{"drafted", drafted}, {"accepted", accepted}};
  }
  return by_drafter;
}

}  // namespace

RunFigures FiguresOf(const Engine& engine, const Answer& answer) {
  RunFigures figures{.tokens = answer.tokens.size(),
                     .ended = std::string(Name(answer.finish)),
                     .usage = answer.usage,
                     .peak = PeakResidentMemory()};
  if (!engine.plan().memory.all_resident) {
    figures.slots = engine.plan().memory.slots;
    figures.experts = engine.plan().needs.AllExperts();
  }
  if (answer.usage.experts.grouped > 0) {
    figures.gate = ToString(engine.group_router()->choice());
  }
  return figures;
}

void AddUsage(Json& record, const ExpertUsage& usage) {
  record["expert_hits"] = usage.hits;
  record["expert_misses"] = usage.misses;
  record["use_hits"] = usage.use_hits;
  record["use_misses"] = usage.use_misses;
  record["reads"] = usage.reads;
  record["bytes_read"] = usage.bytes_read;
  record["reading_s"] = usage.reading_seconds;
  record["stall_s"] = usage.stall_seconds;
  record["verified"] = usage.verified;
  record["answers"] = {{"wait", usage.waited},
                       {"load", usage.loaded},
                       {"load_low", usage.loaded_low},
                       {"elsewhere", usage.elsewhere}};
  record["low_copies"] = usage.low_copies;
  record["low_assignments"] = usage.low_assignments;
  record["substituted"] = usage.substituted;
  record["dropped"] = usage.dropped;
  record["peer_bf16"] = usage.peer_bf16;
  record["peer_q8"] = usage.peer_q8;
  record["grouped"] = usage.grouped;
  record["card_hits"] = usage.card_hits;
  record["card_rows"] = usage.card_rows;
  record["card_copies"] = usage.card_copies;
  record["card_failures"] = usage.card_failures;
  record["deciding_s"] = usage.deciding_seconds;
  record["prefetches"] = usage.prefetches;
  record["prefetch_useful"] = usage.prefetch_useful;
  record["prefetch_late"] = usage.prefetch_late;
  record["prefetch_cancelled"] = usage.prefetch_cancelled;
  record["prefetch_wasted"] = usage.prefetch_wasted;
  record["prefetch_waiting"] = usage.prefetch_waiting;
  record["experts_asked_for"] = usage.asks_after_guess;
  record["experts_guessed"] = usage.guessed;
  record["experts_expected"] = usage.expected;
  record["experts_left_out"] = usage.left_out;
  record["draft_reads"] = usage.draft_reads;
  record["draft_reads_used"] = usage.draft_reads_used;
  record["foresight"] = ToJson(usage.foresight);
  Json hits = Json::Array(), asks = Json::Array();
  for (const LayerHits& layer : usage.layers) {
    hits.push_back(layer.hits);
    asks.push_back(layer.asks);
  }
  record["layer_hits"] = std::move(hits);
  record["layer_asks"] = std::move(asks);
}

void AddGate(Json& record, const Engine& engine) {
  record["gate_s"] = engine.transformer().gate_seconds();
  const GroupRouter* const groups = engine.group_router();
  record["gate"] = groups == nullptr ? "exact" : ToString(groups->choice());
  const GroupRouting routing = groups == nullptr ? GroupRouting() : groups->done();
  record["gate_decisions"] = routing.decisions;
  record["gate_rows_multiplied"] = routing.rows_multiplied;
  record["gate_rows_of_router"] = routing.rows_of_router;
}

ChainReport ChainOf(const Engine& engine) {
  const std::optional<OffloadReport> offload = engine.offload_report();
  return offload ? offload->substitution : ChainReport();
}

Json LinkCounts(const ChainReport& report) {
  Json links = Json::Array();
  for (const ChainReport::Link& link : report.links) {
    Json counts;
    for (const NamedCount& count : link.counts) counts[std::string(count.name)] = count.count;
    links.push_back({{"link", link.link}, {"counts", std::move(counts)}});
  }
  return links;
}

Json RunRecord(const Engine& engine, std::span<const TokenId> prompt, const Sampling& sampling,
               const Answer& answer) {
  const EnginePlan& plan = engine.plan();
  Json record;
  record["model"] = engine.path();
  record["prompt_ids"] = prompt;
  record["token_ids"] = answer.tokens;
  record["text"] = answer.text;
  record["finish"] = Name(answer.finish);
  record["prefill_tokens_per_s"] = answer.usage.PrefillTokensPerSecond();
  record["decode_tokens_per_s"] = answer.usage.DecodeTokensPerSecond();
  record["ttft_s"] = answer.usage.first_token_seconds;
  record["load_s"] = engine.load_seconds();
  record["peak_rss_bytes"] = PeakResidentMemory().count();
  record["memory_budget_bytes"] = plan.memory.budget.count();
  record["planned_bytes"] = plan.memory.total().count();
  record["bytes_touched_per_token"] = engine.bytes_touched_per_token().count();
  record["decode_steps"] = answer.usage.decode_steps;
  record["expert_uses"] = answer.usage.expert_uses;
  const SpeculationUse& drafts = answer.usage.speculation;
  record["drafted"] = drafts.drafted;
  record["draft_accepted"] = drafts.accepted;
  record["draft_checks"] = drafts.checks;
  record["draft_saved_s"] = drafts.saved_seconds;
  record["draft_utility"] = answer.usage.SpeculationUtility();
  record["drafting_s"] = drafts.drafting_seconds;
  record["drafters"] = DraftersJson(drafts);
  AddUsage(record, answer.usage.experts);
  record["substitutions"] = answer.usage.experts.NotExact();
  record["expert_slots"] = plan.memory.slots;
  const std::optional<CardReport> card = engine.card_report();
  record["card"] = card ? Json(card->name) : Json();
  record["card_slots"] = card ? card->slots : 0;
  record["card_vram_bytes"] = card ? card->memory.count() : 0;
  record["card_row_s"] = card ? card->card_seconds : 0;
  record["processor_row_s"] = card ? card->processor_seconds : 0;
  record["card_copy_s"] = card ? card->copy_seconds : 0;
  AddGate(record, engine);
  Json decode;
  AddUsage(decode, answer.usage.decode_experts);
  decode["pass_s"] = answer.usage.decode_pass_seconds;
  decode["time"] = ToJson(answer.usage.DecodePassTime());
  record["decode"] = std::move(decode);
  if (const std::optional<OffloadReport> offload = engine.offload_report()) {
    record["store"] = offload->store;
    record["reader"] = offload->reader;
    record["low_copy"] = ToString(offload->low_copies);
    // Answers that other flags than the dial's make inexact have no limit to name.
    const auto* limit = std::get_if<LossLimit>(&engine.offload_options().lossiness);
    record["quality"] = limit != nullptr ? Json(ToString(*limit))
                        : engine.exact() ? Json("exact")
                                         : Json();
    record["substitution"] = offload->substitution.chain;
    record["substitution_links"] = LinkCounts(offload->substitution);
    record["cache_policy"] = offload->policy;
    record["evictions"] = offload->cache.evictions;
    record["shielded"] = offload->shielded;
    record["filled_experts"] = offload->filled.experts;
    record["filling_s"] = offload->filled.seconds;
    record["read_retries"] = offload->loads.retries;
    record["served_reads"] = offload->loads.served_reads;
    record["begun_before_down"] = offload->begun_before_down;
    record["compared_bytes"] = offload->loads.compared_bytes;
    record["compared_early_bytes"] = offload->loads.compared_early;
    record["finishing_s"] = offload->loads.finishing_seconds;
    if (offload->prefetch) {
      record["predictor"] = offload->prefetch->predictor;
      record["governor_rests"] = offload->prefetch->governor_rests;
      record["prefetch_wasted_share"] = offload->prefetch->wasted_share;
      const JudgedChances& chances = offload->prefetch->stats.chances;
      if (chances.any()) record["chances"] = ToJson(chances);
      if (offload->prefetch->predictor == WorthPrefetch::kName) {
        record["score_tokens_known"] = offload->prefetch->stats.tokens_known;
        record["score_tokens_learned"] = offload->prefetch->stats.tokens_learned;
      }
    }
  }
  record["threads"] = plan.threads;
  record["context"] = plan.context();
  record["target"] = Name(ActiveTarget());
  record["sampler"] = ToString(sampling);
  record["seed"] = sampling.seed;
  return record;
}

void ExplainMisses(Engine& engine) {
  constexpr int kShown = 24;  // a few layers' worth; a run has thousands
  engine.ObserveMisses([told = 0](const MissEvent& event) mutable {
    if (told == 0) Remark("\nfirst experts that were not there:\n");
    if (told < kShown) Remark("  {}\n", ToString(event));
    if (++told == kShown) Remark("  ... the figures at the end count them all\n");
  });
}

void ExplainSubstitution(const Engine& engine) {
  const std::optional<OffloadReport> offload = engine.offload_report();
  if (offload && !offload->substitution.exact()) Remark("{}", Explain(offload->substitution));
}

void ExplainCard(const Engine& engine) {
  const std::optional<CardReport> card = engine.card_report();
  if (!card) return;
  Remark("card: {} holds {} experts, of slots for {}; {} made room for others\n", card->name,
         card->held, card->slots, card->evictions);
  if (!card->status.ok()) Remark("card: not used any more: {}\n", card->status.message());
  if (card->card_seconds <= 0 || card->processor_seconds <= 0) return;
  Remark(
      "card: an expert takes it {:.0f} us for a row, and the processor {:.0f} us; a copy {:.0f} "
      "us\n",
      card->card_seconds * 1e6, card->processor_seconds * 1e6, card->copy_seconds * 1e6);
}

void ExplainForesight(const Usage& usage) {
  Remark("{}", ForesightByDistance(usage.experts.foresight));
}

void ExplainGate(const Engine& engine) {
  const GroupRouter* const groups = engine.group_router();
  if (groups == nullptr) return;
  const GroupRouting& done = groups->done();
  Remark(
      "gate: {} chose for {} tokens of layers, and multiplied {:.1f} % as many rows as the "
      "routers have for them\n",
      ToString(groups->choice()), done.decisions,
      done.rows_of_router == 0 ? 0.0
                               : 100.0 * static_cast<double>(done.rows_multiplied) /
                                     static_cast<double>(done.rows_of_router));
}

void ExplainSpeculation(const Engine& engine, const Usage& usage) {
  const SpeculationUse& drafts = usage.speculation;
  if (!engine.plan().drafters.any()) return Remark("speculation: off\n");
  if (drafts.drafting_seconds > 0) {
    Remark("speculation: models took {:.2f} s to draft\n", drafts.drafting_seconds);
  }
  if (drafts.checks == 0) {
    return Remark("speculation: no draft was worth a check{}\n",
                  engine.exact() ? "" : ", as answers may differ from the exact ones");
  }
  Remark("speculation: {} passes checked {} tokens, {} were right; {} {:.2f} s, utility {:.2f}\n",
         drafts.checks, drafts.drafted, drafts.accepted,
         drafts.saved_seconds < 0 ? "lost" : "saved", std::abs(drafts.saved_seconds),
         usage.SpeculationUtility());
  for (std::size_t source = 0; source < kDraftSources; ++source) {
    const DraftedTokens& by = drafts.by_source[source];
    if (by.drafted == 0) continue;
    Remark("speculation: {} of {} right by {}\n", by.accepted, by.drafted,
           Name(static_cast<DraftSource>(source)));
  }
  if (const ExpertUsage& experts = usage.experts; experts.draft_reads > 0) {
    Remark("speculation: drafts began {} reads, and their checks asked for {} of them\n",
           experts.draft_reads, experts.draft_reads_used);
  }
}

void PrintPlan(const Engine& engine, const Sampling& sampling) {
  Remark("model         {}\n", engine.path());
  for (const std::string& line : Describe(engine.config())) Remark("{}\n", line);
  for (const std::string& line : Describe(engine.plan())) Remark("{}\n", line);
  Remark("kernels       {}\n", Name(ActiveTarget()));
  Remark("per token     {} of weights are read\n", ToString(engine.bytes_touched_per_token()));
  Remark("sampling      {}\n", ToString(sampling));
}

}  // namespace troupe
