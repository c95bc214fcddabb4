#include "server/model_metrics.h"

#include <string>
#include <utility>

namespace troupe {
namespace {

void AddModel(const Metrics& model, std::size_t parked, MetricFamilies& families) {
  constexpr auto kNow = "Requests now, by what they wait for";
  families.Gauge("troupe_requests_now", kNow, model.requests_waiting, {{"state", "queued"}});
  families.Gauge("troupe_requests_now", kNow, model.requests_reading, {{"state", "reading"}});
  families.Gauge("troupe_requests_now", kNow, model.requests_decoding, {{"state", "decoding"}});
  families.Gauge("troupe_requests_now", kNow, parked, {{"state", "parked"}});
  constexpr auto kEnded = "Answers of the model by how they ended";
  families.Counter("troupe_answers_total", kEnded, model.requests_finished, {{"end", "finished"}});
  families.Counter("troupe_answers_total", kEnded, model.requests_cancelled,
                   {{"end", "cancelled"}});
  families.Counter("troupe_answers_total", kEnded, model.requests_failed, {{"end", "failed"}});
  families.Counter("troupe_answers_total", kEnded, model.requests_refused, {{"end", "refused"}});
  families.Counter("troupe_passes_total", "Passes through the model", model.passes);
  families.Counter("troupe_failed_passes_total", "Passes that failed", model.failed_passes);
  families.Counter("troupe_abandoned_passes_total",
                   "Passes that ended between two layers, as all requests in them were cancelled",
                   model.abandoned_passes);
  families.Counter("troupe_pass_seconds_total", "Time in passes", model.pass_seconds);
  families.Counter("troupe_rule_seconds_total",
                   "Time to find which tokens the rules of answers allow, while no pass runs",
                   model.rule_seconds);
  families.Histogram("troupe_pass_rows", "Tokens that went through the layers together",
                     model.pass_rows);
  constexpr auto kTokens = "Tokens of prompts read or found in the prefix cache, and generated";
  families.Counter("troupe_tokens_total", kTokens, model.prompt_tokens, {{"kind", "prompt"}});
  families.Counter("troupe_tokens_total", kTokens, model.prefix_cache.cached_tokens,
                   {{"kind", "cached"}});
  families.Counter("troupe_tokens_total", kTokens, model.generated_tokens, {{"kind", "generated"}});
  constexpr auto kDrafts = "Tokens of drafts that were checked, by whether the text has them";
  const SpeculationUse& drafts = model.speculation;
  families.Counter("troupe_drafted_tokens_total", kDrafts, drafts.accepted, {{"end", "accepted"}});
  families.Counter("troupe_drafted_tokens_total", kDrafts, drafts.drafted - drafts.accepted,
                   {{"end", "rejected"}});
  constexpr auto kByDrafter = "Tokens of drafts that were checked, by who guessed them";
  for (std::size_t source = 0; source < kDraftSources; ++source) {
    const auto& [drafted, accepted] = drafts.by_source[source];
    const std::string drafter(Name(static_cast<DraftSource>(source)));
    families.Counter("troupe_drafter_tokens_total", kByDrafter, accepted,
                     {{"drafter", drafter}, {"end", "accepted"}});
    families.Counter("troupe_drafter_tokens_total", kByDrafter, drafted - accepted,
                     {{"drafter", drafter}, {"end", "rejected"}});
  }
  families.Counter("troupe_drafting_seconds_total", "Time that models took to draft",
                   drafts.drafting_seconds);
  families.Counter("troupe_draft_checks_total", "Drafts that were checked", drafts.checks);
  families.Gauge("troupe_draft_saved_seconds",
                 "Time that drafts have saved, as measured; below 0: that they have cost",
                 drafts.saved_seconds);
  families.Counter("troupe_draft_rest_passes_total",
                   "Passes without drafts, to compare what a token takes then",
                   model.draft_rest_passes);
  families.Gauge("troupe_draft_put_right_seconds",
                 "What such comparisons added to the time that drafts were thought to save; below "
                 "0: they save less than was thought",
                 model.draft_put_right_seconds);
  families.Counter("troupe_prefix_cache_hits_total",
                   "Requests that found the beginning of their prompt", model.prefix_cache.hits);
  families.Counter("troupe_prefix_cache_given_up_tokens_total",
                   "Room for tokens that the prefix cache gave up to requests",
                   model.prefix_cache.given_up_tokens);
  families.Gauge("troupe_prefix_cache_tokens", "Room for tokens in what the prefix cache keeps",
                 model.prefix_cache.kept_tokens);
  families.Gauge("troupe_kv_tokens", "Room for tokens in the KV cache, for requests and prefixes",
                 model.prefix_cache.most_tokens);
  constexpr auto kPages = "Pages of the KV cache, by who has them";
  families.Gauge("troupe_kv_pages", kPages, model.kv_pages.free, {{"state", "free"}});
  families.Gauge("troupe_kv_pages", kPages, model.kv_pages.held, {{"state", "requests"}});
  families.Gauge("troupe_kv_pages", kPages, model.kv_pages.cached, {{"state", "prefix_cache"}});
  families.Gauge("troupe_kv_page_tokens", "Room for tokens in a page of the KV cache",
                 model.kv_pages.tokens_each);
}

void AddAsks(const ExpertUsage& experts, MetricFamilies& families) {
  constexpr auto kAsks = "Asks of layers for experts, by whether memory held them";
  families.Counter("troupe_expert_asks_total", kAsks, experts.hits, {{"found", "hit"}});
  families.Counter("troupe_expert_asks_total", kAsks, experts.misses, {{"found", "miss"}});
  constexpr auto kOfLayer = "Asks for experts by layer, and by whether memory held them";
  for (std::size_t l = 0; l < experts.layers.size(); ++l) {
    const LayerHits& layer = experts.layers[l];
    if (layer.asks == 0) continue;
    const std::string name = std::to_string(l);
    families.Counter("troupe_layer_expert_asks_total", kOfLayer, layer.hits,
                     {{"layer", name}, {"found", "hit"}});
    families.Counter("troupe_layer_expert_asks_total", kOfLayer, layer.asks - layer.hits,
                     {{"layer", name}, {"found", "miss"}});
  }
  constexpr auto kTiers =
      "Asks for experts by where the answer came from: a card's memory, memory, a load under way, "
      "the disk in full or as a low copy, or another place that computed it";
  for (const auto& [tier, asks] : {std::pair{"card", experts.card_hits},
                                   {"memory", experts.hits},
                                   {"loading", experts.waited},
                                   {"disk", experts.loaded},
                                   {"disk_low_copy", experts.loaded_low},
                                   {"elsewhere", experts.elsewhere}}) {
    families.Counter("troupe_tier_expert_asks_total", kTiers, asks, {{"tier", tier}});
  }
}

// How early, and how surely, what had to be loaded was known.
void AddForesight(const Foresight& foresight, MetricFamilies& families) {
  families.Counter("troupe_needed_loads_total",
                   "Asks of decode that needed a load, on demand or ahead", foresight.needed);
  constexpr auto kPredictedLoads =
      "Of the needed loads: known at least so well before they were asked for";
  for (const auto& [known, loads] : {std::pair{"named", foresight.named},
                                     {"likely", foresight.likely},
                                     {"in_time", foresight.in_time}}) {
    families.Counter("troupe_predicted_loads_total", kPredictedLoads, loads, {{"known", known}});
  }
  // Of each distance: of two kinds that add up, the first, and both.
  const auto add = [&](const char* name, const char* help, const char* label, const char* first,
                       const char* rest, auto count) {
    for (std::size_t i = 0; i < foresight.from.size(); ++i) {
      const auto [of_first, of_both] = count(foresight.from[i]);
      const std::string layers = std::to_string(i + 1);
      families.Counter(name, help, of_first, {{"layers_ahead", layers}, {label, first}});
      families.Counter(name, help, of_both - of_first, {{"layers_ahead", layers}, {label, rest}});
    }
  };
  add("troupe_predicted_loads_by_distance_total",
      "Of the needed loads: named by the guess of that distance, in layers", "odds", "likely",
      "unlikely", [](const ForesightFrom& from) { return std::pair(from.likely, from.named); });
  add("troupe_likely_guesses_total", "Likely guesses of experts that were not in memory", "came",
      "true", "false",
      [](const ForesightFrom& from) { return std::pair(from.came_true, from.guesses); });
}

void AddCard(const ExpertUsage& experts, const CardState& card, MetricFamilies& families) {
  families.Counter("troupe_card_rows_total", "Rows of experts that a card answered",
                   experts.card_rows);
  families.Counter("troupe_card_copies_total", "Experts copied into a card's memory",
                   experts.card_copies);
  families.Counter("troupe_card_failures_total",
                   "Cards that failed or hung, after which the processor goes on alone",
                   experts.card_failures);
  constexpr auto kSlots = "Slots of a card's memory for experts, by whether they hold one";
  families.Gauge("troupe_card_slots", kSlots, card.held, {{"state", "held"}});
  families.Gauge("troupe_card_slots", kSlots, card.slots - card.held, {{"state", "free"}});
}

void AddReads(const ExpertUsage& experts, MetricFamilies& families) {
  families.Counter("troupe_reads_total", "Reads of experts handed to the system", experts.reads);
  families.Counter("troupe_read_bytes_total", "Bytes of experts read", experts.bytes_read);
  families.Counter("troupe_reading_seconds_total", "Time with at least one read under way",
                   experts.reading_seconds);
  families.Counter("troupe_stall_seconds_total",
                   "Time in which nothing could be computed until a load ended",
                   experts.stall_seconds);
  families.Counter("troupe_experts_verified_total",
                   "Experts whose bytes were those that were recorded of them, each once",
                   experts.verified);
  constexpr auto kAhead = "Loads begun before they were asked for, by what became of them";
  for (const auto& [end, loads] : {std::pair{"useful", experts.prefetch_useful},
                                   {"late", experts.prefetch_late},
                                   {"cancelled", experts.prefetch_cancelled},
                                   {"wasted", experts.prefetch_wasted}}) {
    families.Counter("troupe_prefetches_total", kAhead, loads, {{"end", end}});
  }
  constexpr auto kOfDrafts =
      "Loads begun as drafts named their experts, by whether the next pass asked for them";
  families.Counter("troupe_draft_reads_total", kOfDrafts, experts.draft_reads_used,
                   {{"end", "used"}});
  families.Counter("troupe_draft_reads_total", kOfDrafts,
                   experts.draft_reads - experts.draft_reads_used, {{"end", "unused"}});
  AddForesight(experts.foresight, families);
  constexpr auto kLossy = "Answers that are not exact; none unless somebody allowed them";
  for (const auto& [kind, slots] : {std::pair{"substituted", experts.substituted},
                                    {"dropped", experts.dropped},
                                    {"low_copy", experts.low_assignments},
                                    {"peer_bf16", experts.peer_bf16},
                                    {"peer_q8", experts.peer_q8},
                                    {"grouped", experts.grouped}}) {
    families.Counter("troupe_inexact_total", kLossy, slots, {{"kind", kind}});
  }
}

void AddPlan(const Plan& plan, MetricFamilies& families) {
  constexpr auto kBudget = "How the memory budget is divided";
  for (const auto& [part, bytes] : {std::pair{"program", plan.program},
                                    {"connections", plan.connections},
                                    {"rules", plan.rules},
                                    {"peers", plan.peers},
                                    {"requests", plan.requests},
                                    {"words", plan.words},
                                    {"cut_prompts", plan.cuts},
                                    {"draft", plan.draft},
                                    {"dense", plan.dense},
                                    {"kv_cache", plan.kv_cache},
                                    {"state", plan.state},
                                    {"workspace", plan.workspace},
                                    {"staging", plan.staging},
                                    {"prediction", plan.prediction},
                                    {"experts", plan.experts}}) {
    families.Gauge("troupe_memory_plan_bytes", kBudget, bytes, {{"part", part}});
  }
  families.Gauge("troupe_memory_budget_bytes", "The budget of the process", plan.budget);
  families.Gauge("troupe_card_vram_bytes", "What is taken of a card's memory; 0: there is none",
                 plan.card);
  constexpr auto kExperts = "Experts that a card and memory can hold, and all of them";
  families.Gauge("troupe_experts", kExperts, plan.experts_in_card, {{"which", "in_card"}});
  families.Gauge("troupe_experts", kExperts, plan.experts_in_memory, {{"which", "in_memory"}});
  families.Gauge("troupe_experts", kExperts, plan.experts_in_all, {{"which", "all"}});
}

}  // namespace

void AddModelMetrics(const Metrics& model, const Plan& plan, std::size_t parked,
                     MetricFamilies& families) {
  AddModel(model, parked, families);
  AddAsks(model.experts, families);
  AddCard(model.experts, model.card, families);
  AddReads(model.experts, families);
  AddPlan(plan, families);
}

}  // namespace troupe
