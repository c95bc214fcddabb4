#include "server/serve_metrics.h"

#include <prometheus/histogram.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <array>
#include <atomic>
#include <limits>
#include <map>
#include <sstream>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "machine/process_memory.h"
#include "server/api_error.h"

namespace troupe {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

const std::vector<double> kRequestSeconds = {0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1,  2.5,
                                             5,    10,    25,   50,  100,  250, 500};
const std::vector<double> kTokenSeconds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                           0.1,   0.25,   0.5,   1,    2.5,   5};

class Families {
 public:
  void Counter(std::string name, std::string help, double value, Labels labels = {}) {
    Add(std::move(name), std::move(help), MetricType::Counter, value, std::move(labels));
  }
  void Gauge(std::string name, std::string help, double value, Labels labels = {}) {
    Add(std::move(name), std::move(help), MetricType::Gauge, value, std::move(labels));
  }
  void Histogram(std::string name, std::string help, const prometheus::Histogram& histogram) {
    families_.push_back({.name = std::move(name),
                         .help = std::move(help),
                         .type = MetricType::Histogram,
                         .metric = {histogram.Collect()}});
  }
  // `passes` are of at most 1, 2, 4, … rows, and in its last entry of more.
  void Histogram(std::string name, std::string help, const PassRowCounts& counts) {
    ClientMetric metric;
    std::uint64_t passes = 0;
    for (std::size_t i = 0; i < counts.passes.size(); ++i) {
      passes += counts.passes[i];
      const bool last = i == PassRowCounts::kBounds;
      metric.histogram.bucket.push_back(
          {.cumulative_count = passes,
           .upper_bound = last ? std::numeric_limits<double>::infinity()
                               : static_cast<double>(std::uint64_t{1} << i)});
    }
    metric.histogram.sample_count = passes;
    metric.histogram.sample_sum = static_cast<double>(counts.rows);
    families_.push_back({.name = std::move(name),
                         .help = std::move(help),
                         .type = MetricType::Histogram,
                         .metric = {std::move(metric)}});
  }
  std::string Text() const {
    std::ostringstream text;
    prometheus::TextSerializer().Serialize(text, families_);
    return std::move(text).str();
  }

 private:
  // Metrics of one name follow each other.
  void Add(std::string name, std::string help, MetricType type, double value, Labels labels) {
    ClientMetric metric;
    metric.label = std::move(labels);
    if (type == MetricType::Counter) {
      metric.counter.value = value;
    } else {
      metric.gauge.value = value;
    }
    if (families_.empty() || families_.back().name != name) {
      families_.push_back(
          {.name = std::move(name), .help = std::move(help), .type = type, .metric = {}});
    }
    families_.back().metric.push_back(std::move(metric));
  }

  std::vector<MetricFamily> families_;
};

double Of(std::uint64_t count) { return static_cast<double>(count); }
double Of(Bytes bytes) { return static_cast<double>(bytes.count()); }

void AddReloads(const std::array<std::atomic<std::uint64_t>, 3>& reloads, Families& families) {
  constexpr auto kReloads = "Changes of the model on SIGHUP, by how they ended";
  for (const auto& [end, name] : {std::pair{ReloadEnd::kDone, "done"},
                                  {ReloadEnd::kRefused, "refused"},
                                  {ReloadEnd::kUndone, "undone"}}) {
    families.Counter("troupe_reloads_total", kReloads,
                     Of(reloads[static_cast<std::size_t>(end)].load()), {{"result", name}});
  }
}

void AddModel(const Metrics& model, std::size_t parked, Families& families) {
  constexpr auto kNow = "Requests now, by what they wait for";
  families.Gauge("troupe_requests_now", kNow, Of(model.requests_waiting), {{"state", "queued"}});
  families.Gauge("troupe_requests_now", kNow, Of(model.requests_reading), {{"state", "reading"}});
  families.Gauge("troupe_requests_now", kNow, Of(model.requests_decoding), {{"state", "decoding"}});
  families.Gauge("troupe_requests_now", kNow, Of(parked), {{"state", "parked"}});
  constexpr auto kEnded = "Answers of the model by how they ended";
  families.Counter("troupe_answers_total", kEnded, Of(model.requests_finished),
                   {{"end", "finished"}});
  families.Counter("troupe_answers_total", kEnded, Of(model.requests_cancelled),
                   {{"end", "cancelled"}});
  families.Counter("troupe_answers_total", kEnded, Of(model.requests_failed), {{"end", "failed"}});
  families.Counter("troupe_answers_total", kEnded, Of(model.requests_refused),
                   {{"end", "refused"}});
  families.Counter("troupe_passes_total", "Passes through the model", Of(model.passes));
  families.Counter("troupe_failed_passes_total", "Passes that failed", Of(model.failed_passes));
  families.Counter("troupe_pass_seconds_total", "Time in passes", model.pass_seconds);
  families.Counter("troupe_rule_seconds_total",
                   "Time to find which tokens the rules of answers allow, while no pass runs",
                   model.rule_seconds);
  families.Histogram("troupe_pass_rows", "Tokens that went through the layers together",
                     model.pass_rows);
  constexpr auto kTokens = "Tokens of prompts read or found in the prefix cache, and generated";
  families.Counter("troupe_tokens_total", kTokens, Of(model.prompt_tokens), {{"kind", "prompt"}});
  families.Counter("troupe_tokens_total", kTokens, Of(model.prefix_cache.cached_tokens),
                   {{"kind", "cached"}});
  families.Counter("troupe_tokens_total", kTokens, Of(model.generated_tokens),
                   {{"kind", "generated"}});
  constexpr auto kDrafts = "Tokens of drafts that were checked, by whether the text has them";
  const SpeculationUse& drafts = model.speculation;
  families.Counter("troupe_drafted_tokens_total", kDrafts, Of(drafts.accepted),
                   {{"end", "accepted"}});
  families.Counter("troupe_drafted_tokens_total", kDrafts, Of(drafts.drafted - drafts.accepted),
                   {{"end", "rejected"}});
  constexpr auto kByDrafter = "Tokens of drafts that were checked, by who guessed them";
  for (std::size_t source = 0; source < kDraftSources; ++source) {
    const auto& [drafted, accepted] = drafts.by_source[source];
    const std::string drafter(Name(static_cast<DraftSource>(source)));
    families.Counter("troupe_drafter_tokens_total", kByDrafter, Of(accepted),
                     {{"drafter", drafter}, {"end", "accepted"}});
    families.Counter("troupe_drafter_tokens_total", kByDrafter, Of(drafted - accepted),
                     {{"drafter", drafter}, {"end", "rejected"}});
  }
  families.Counter("troupe_drafting_seconds_total", "Time that a draft model took",
                   drafts.drafting_seconds);
  families.Counter("troupe_draft_checks_total", "Drafts that were checked", Of(drafts.checks));
  families.Gauge("troupe_draft_saved_seconds",
                 "Time that drafts have saved, as measured; below 0: that they have cost",
                 drafts.saved_seconds);
  families.Counter("troupe_prefix_cache_hits_total",
                   "Requests that found the beginning of their prompt",
                   Of(model.prefix_cache.hits));
  families.Counter("troupe_prefix_cache_given_up_tokens_total",
                   "Room for tokens that the prefix cache gave up to requests",
                   Of(model.prefix_cache.given_up_tokens));
  families.Gauge("troupe_prefix_cache_tokens", "Room for tokens in what the prefix cache keeps",
                 Of(model.prefix_cache.kept_tokens));
  families.Gauge("troupe_kv_tokens", "Room for tokens in the KV cache, for requests and prefixes",
                 Of(model.prefix_cache.most_tokens));
  constexpr auto kPages = "Pages of the KV cache, by who has them";
  families.Gauge("troupe_kv_pages", kPages, Of(model.kv_pages.free), {{"state", "free"}});
  families.Gauge("troupe_kv_pages", kPages, Of(model.kv_pages.held), {{"state", "requests"}});
  families.Gauge("troupe_kv_pages", kPages, Of(model.kv_pages.cached), {{"state", "prefix_cache"}});
  families.Gauge("troupe_kv_page_tokens", "Room for tokens in a page of the KV cache",
                 Of(model.kv_pages.tokens_each));
}

void AddAsks(const ExpertUsage& experts, Families& families) {
  constexpr auto kAsks = "Asks of layers for experts, by whether memory held them";
  families.Counter("troupe_expert_asks_total", kAsks, Of(experts.hits), {{"found", "hit"}});
  families.Counter("troupe_expert_asks_total", kAsks, Of(experts.misses), {{"found", "miss"}});
  constexpr auto kOfLayer = "Asks for experts by layer, and by whether memory held them";
  for (std::size_t l = 0; l < experts.layers.size(); ++l) {
    const LayerHits& layer = experts.layers[l];
    if (layer.asks == 0) continue;
    const std::string name = std::to_string(l);
    families.Counter("troupe_layer_expert_asks_total", kOfLayer, Of(layer.hits),
                     {{"layer", name}, {"found", "hit"}});
    families.Counter("troupe_layer_expert_asks_total", kOfLayer, Of(layer.asks - layer.hits),
                     {{"layer", name}, {"found", "miss"}});
  }
  constexpr auto kTiers =
      "Asks for experts by where the answer came from: memory, a load under way, the disk in full "
      "or as a low copy, or another place that computed it";
  for (const auto& [tier, asks] : {std::pair{"memory", experts.hits},
                                   {"loading", experts.waited},
                                   {"disk", experts.loaded},
                                   {"disk_low_copy", experts.loaded_low},
                                   {"elsewhere", experts.elsewhere}}) {
    families.Counter("troupe_tier_expert_asks_total", kTiers, Of(asks), {{"tier", tier}});
  }
}

void AddReads(const ExpertUsage& experts, Families& families) {
  families.Counter("troupe_reads_total", "Reads of experts handed to the system",
                   Of(experts.reads));
  families.Counter("troupe_read_bytes_total", "Bytes of experts read", Of(experts.bytes_read));
  families.Counter("troupe_reading_seconds_total", "Time with at least one read under way",
                   experts.reading_seconds);
  families.Counter("troupe_stall_seconds_total",
                   "Time in which nothing could be computed until a load ended",
                   experts.stall_seconds);
  constexpr auto kAhead = "Loads begun before they were asked for, by what became of them";
  for (const auto& [end, loads] : {std::pair{"useful", experts.prefetch_useful},
                                   {"late", experts.prefetch_late},
                                   {"cancelled", experts.prefetch_cancelled},
                                   {"wasted", experts.prefetch_wasted}}) {
    families.Counter("troupe_prefetches_total", kAhead, Of(loads), {{"end", end}});
  }
  constexpr auto kLossy = "Answers that are not exact; none unless somebody allowed them";
  for (const auto& [kind, slots] : {std::pair{"substituted", experts.substituted},
                                    {"dropped", experts.dropped},
                                    {"low_copy", experts.low_assignments},
                                    {"peer_bf16", experts.peer_bf16},
                                    {"peer_q8", experts.peer_q8}}) {
    families.Counter("troupe_inexact_total", kLossy, Of(slots), {{"kind", kind}});
  }
}

void AddPlan(const Plan& plan, Families& families) {
  constexpr auto kBudget = "How the memory budget is divided";
  for (const auto& [part, bytes] : {std::pair{"program", plan.program},
                                    {"connections", plan.connections},
                                    {"rules", plan.rules},
                                    {"peers", plan.peers},
                                    {"requests", plan.requests},
                                    {"words", plan.words},
                                    {"draft", plan.draft},
                                    {"dense", plan.dense},
                                    {"kv_cache", plan.kv_cache},
                                    {"state", plan.state},
                                    {"workspace", plan.workspace},
                                    {"staging", plan.staging},
                                    {"prediction", plan.prediction},
                                    {"experts", plan.experts}}) {
    families.Gauge("troupe_memory_plan_bytes", kBudget, Of(bytes), {{"part", part}});
  }
  families.Gauge("troupe_memory_budget_bytes", "The budget of the process", Of(plan.budget));
  constexpr auto kExperts = "Experts that memory can hold, and all of them";
  families.Gauge("troupe_experts", kExperts, plan.experts_in_memory, {{"which", "in_memory"}});
  families.Gauge("troupe_experts", kExperts, plan.experts_in_all, {{"which", "all"}});
}

void AddTransport(const HttpCounters& http, Families& families) {
  families.Gauge("troupe_http_connections", "Connections now", Of(http.connections));
  families.Counter("troupe_http_accepted_total", "Connections accepted", Of(http.accepted));
  families.Counter("troupe_http_overtook_total",
                   "Small bodies that were handled while a larger one was", Of(http.overtook));
  constexpr auto kRefused = "Connections ended by the server, by why";
  families.Counter("troupe_http_ended_total", kRefused, Of(http.malformed), {{"why", "malformed"}});
  families.Counter("troupe_http_ended_total", kRefused, Of(http.timed_out), {{"why", "timed_out"}});
  families.Counter("troupe_http_ended_total", kRefused, Of(http.too_slow), {{"why", "too_slow"}});
  families.Counter("troupe_http_ended_total", kRefused, Of(http.refused), {{"why", "refused"}});
  families.Counter("troupe_http_ended_total", kRefused, Of(http.no_room), {{"why", "no_room"}});
}

}  // namespace

class ServeMetrics::Impl {
 public:
  Mutex mu;
  // By endpoint and status of HTTP.
  std::map<std::pair<std::string, int>, std::uint64_t> requests TROUPE_GUARDED_BY(mu);
  prometheus::Histogram first_token{kRequestSeconds}, gaps{kTokenSeconds}, queue{kRequestSeconds},
      whole{kRequestSeconds};
  std::array<std::atomic<std::uint64_t>, 3> reloads = {};  // by ReloadEnd
  std::atomic<std::uint64_t> returned = 0;                 // bytes
};

ServeMetrics::ServeMetrics() : impl_(std::make_unique<Impl>()) {}
ServeMetrics::~ServeMetrics() = default;

void ServeMetrics::OnGap(double seconds) { impl_->gaps.Observe(seconds); }

void ServeMetrics::CountRequest(std::string_view endpoint, int status) {
  const MutexLock lock(impl_->mu);
  ++impl_->requests[{std::string(endpoint), status}];
}

void ServeMetrics::OnEnd(std::string_view endpoint, const JobEnd& end) {
  constexpr int kClientLeft = 499;
  CountRequest(endpoint, end.cancelled ? kClientLeft : HttpStatusOf(end.status));
  if (!end.status.ok() || end.cancelled) return;
  impl_->whole.Observe(end.seconds);
  if (end.first_piece_seconds > 0) impl_->first_token.Observe(end.first_piece_seconds);
  for (const ChoiceAnswer& choice : end.choices) {
    impl_->queue.Observe(choice.answer.usage.queue_seconds);
  }
}

void ServeMetrics::CountReload(ReloadEnd end) { ++impl_->reloads[static_cast<std::size_t>(end)]; }

void ServeMetrics::CountReturned(Bytes bytes) { impl_->returned += bytes.count(); }

std::string ServeMetrics::Page(const Metrics& model, const Plan& plan,
                               const BesideModel& beside) const {
  Families families;
  {
    const MutexLock lock(impl_->mu);
    for (const auto& [key, count] : impl_->requests) {
      families.Counter("troupe_requests_total",
                       "Requests by endpoint and status; 499: the client left", Of(count),
                       {{"endpoint", key.first}, {"status", std::to_string(key.second)}});
    }
  }
  families.Histogram("troupe_time_to_first_token_seconds",
                     "From a request to the first text of its answer", impl_->first_token);
  families.Histogram("troupe_time_between_tokens_seconds", "Between two pieces of an answer",
                     impl_->gaps);
  families.Histogram("troupe_queue_seconds", "From a request to its first pass", impl_->queue);
  families.Histogram("troupe_request_seconds", "From a request to the end of its answer",
                     impl_->whole);
  AddReloads(impl_->reloads, families);
  families.Counter("troupe_heap_returned_bytes_total",
                   "Memory that answers no longer use and the system has got back",
                   Of(impl_->returned.load()));
  families.Counter("troupe_passed_over_total",
                   "Requests with tools or items that this server does not know and leaves out",
                   Of(beside.passed_over));
  AddModel(model, beside.parked, families);
  AddAsks(model.experts, families);
  AddReads(model.experts, families);
  AddPlan(plan, families);
  families.Gauge("troupe_requests_kept_bytes",
                 "What requests that wait or are answered have of their part of the memory plan",
                 Of(beside.kept));
  for (const ExtraMetric& one : beside.more) {
    Labels labels;
    for (const auto& [name, value] : one.labels) labels.push_back({name, value});
    if (one.is_counter) {
      families.Counter(one.name, one.help, one.value, std::move(labels));
    } else {
      families.Gauge(one.name, one.help, one.value, std::move(labels));
    }
  }
  families.Gauge("process_resident_memory_bytes", "Memory that the process has now",
                 Of(ResidentMemory()));
  if (beside.transport) AddTransport(*beside.transport, families);
  if (beside.log) {
    constexpr auto kLines =
        "Lines of the access log; lost: the disk is full, or slower than they come";
    families.Counter("troupe_log_lines_total", kLines, Of(beside.log->written),
                     {{"end", "written"}});
    families.Counter("troupe_log_lines_total", kLines, Of(beside.log->lost), {{"end", "lost"}});
  }
  return families.Text();
}

}  // namespace troupe
