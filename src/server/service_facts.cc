// The endpoints of Service that tell of the model and the server, and need no pass of the model.
#include <fmt/chrono.h>
#include <troupe/version.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>
#include <vector>

#include "api/model_access.h"
#include "server/api_error.h"
#include "server/cloud_answer.h"
#include "server/cloud_cut.h"
#include "server/live_page.h"
#include "server/live_state.h"
#include "server/request_body.h"
#include "server/service.h"
#include "server/service_paths.h"
#include "server/sse.h"

namespace troupe {
namespace {

// How ends share this cloud.
void TellTurns(const EndTurns& turns, std::vector<ExtraMetric>& metrics) {
  const EndTurns::Counters counters = turns.counters();
  constexpr auto kTurns = "Answers of ends that got a sequence, by whether they waited for it";
  const std::pair<const char*, std::uint64_t> all[] = {{"at_once", counters.at_once},
                                                       {"later", counters.later}};
  for (const auto& [came, number] : all) {
    metrics.push_back({.name = "troupe_cloud_turns_total",
                       .help = kTurns,
                       .is_counter = true,
                       .value = static_cast<double>(number),
                       .labels = {{"came", came}}});
  }
  metrics.push_back({.name = "troupe_cloud_turns_to_fewer_total",
                     .help = "Of the later ones, those of an end that had fewer sequences than "
                             "another one that waited",
                     .is_counter = true,
                     .value = static_cast<double>(counters.to_fewer)});
  metrics.push_back({.name = "troupe_cloud_answers_waiting",
                     .help = "Answers of ends that wait for a sequence",
                     .value = static_cast<double>(turns.waiting())});
}

}  // namespace

// As OpenAI's clients read it, Anthropic's, vLLM's and llama-server's.
Json Service::ModelJson(const Facts& told) const {
  return {{"id", told.options.name},
          {"object", "model"},
          {"created", started_},
          {"owned_by", "troupe"},
          {"type", "model"},
          {"display_name", told.options.name},
          {"created_at", fmt::format("{:%FT%TZ}", fmt::gmtime(static_cast<std::time_t>(started_)))},
          {"max_model_len", told.plan.context},
          {"meta", Json{{"n_ctx", told.plan.context}}}};
}

void Service::OnModels(HttpRequest, HttpReplyPtr reply) {
  const Json model = ModelJson(*facts());
  // Codex wants its own catalogue, and does well with an empty one.
  Reply(kModels, *reply,
        {.body = Json{{"object", "list"},
                      {"data", Json::Array({model})},
                      {"has_more", false},
                      {"first_id", *model.Find("id")},
                      {"last_id", *model.Find("id")},
                      {"models", Json::Array()}}
                     .Dump()});
}

void Service::OnModel(HttpRequest request, HttpReplyPtr reply) {
  const auto told = facts();
  const std::string id = request.path.substr(request.path.find("models/") + 7);
  if (id == told->options.name) return Reply(kModel, *reply, {.body = ModelJson(*told).Dump()});
  Reply(kModel, *reply, NoSuchModel(id, told->options.name, StyleOf(request)));
}

void Service::OnProps(HttpRequest, HttpReplyPtr reply) {
  const auto told = facts();
  const Plan& plan = told->plan;
  const Sampling& sampling = told->options.sampling;
  Reply(kProps, *reply,
        {.body = Json{{"model", told->options.name},
                      {"version", Version()},
                      {"context", plan.context},
                      {"sequences", plan.sequences},
                      {"total_slots", plan.sequences},
                      {"memory_budget_bytes", plan.budget.count()},
                      {"experts_in_memory", plan.experts_in_memory},
                      {"experts", plan.experts_in_all},
                      {"lossiness", plan.lossiness},
                      {"chat_template", told->chat_template},
                      {"default_generation_settings", Json{{"n_ctx", plan.context},
                                                           {"temperature", sampling.temperature},
                                                           {"top_k", sampling.top_k},
                                                           {"top_p", sampling.top_p},
                                                           {"min_p", sampling.min_p}}}}
                     .Dump()});
}

// As llama-server answers: who balances load between servers knows these words.
void Service::OnHealth(HttpRequest, HttpReplyPtr reply) {
  if (gate_.has_model()) return Reply(kHealth, *reply, {.body = R"({"status":"ok"})"});
  Reply(kHealth, *reply, {.status = 503, .body = R"({"status":"loading model"})"});
}

void Service::OnPage(HttpRequest request, HttpReplyPtr reply) {
  Reply(kStart, *reply, LivePage(request));
}

void Service::OnLive(HttpRequest request, HttpReplyPtr reply) {
  if (request.method == "HEAD")
    return Reply(kLive, *reply, {.content_type = std::string(kEventStream)});
  const auto told = facts();
  const Status added =
      feed_.Add(reply, EventOf("facts", LiveFacts(told->options.name, told->plan, told->is_node)));
  if (!added.ok()) return Reply(kLive, *reply, ErrorResponse(added));
  metrics_.CountRequest(kLive, 200);
}

std::string Service::LiveEvents() {
  // Passes of a model that reads much from disk may take seconds; the page shows that it lives.
  constexpr std::chrono::seconds kLongestWait(1);
  const std::optional<ModelUse> use = gate_.Look();
  if (!use) return CommentEvent("the model is being loaded");
  std::string events;
  if (auto now = facts(); now != facts_told_) {
    events = EventOf("facts", LiveFacts(now->options.name, now->plan, now->is_node));
    facts_told_ = std::move(now);
  }
  const ServedModel& served = use->served();
  if (served.places) events += EventOf("places", served.places().Dump());
  const Model& model = *served.model;
  const ModelState state = model.state(kLongestWait);
  const std::chrono::duration<double> now = std::chrono::steady_clock::now().time_since_epoch();
  return events + EventOf("state", LiveState(model.metrics(), state,
                                             {.now = now.count(),
                                              .first_token = first_token_.Look(),
                                              .between_tokens = between_tokens_.Look()}));
}

void Service::OnSplitHello(HttpRequest request, HttpReplyPtr reply) {
  const std::optional<ModelUse> use = gate_.Look();
  if (!use) {
    return Reply(kSplitHello, *reply,
                 ErrorResponse(Error(Code::kUnavailable, "the model is being loaded")));
  }
  const ServedModel& served = use->served();
  if (!served.for_ends) return Reply(kSplitHello, *reply, NotForEnds());
  Reply(kSplitHello, *reply, {.body = Encode(HelloTo(served, end_turns_.Before(EndOf(request))))});
}

void Service::OnSplitDrafts(HttpRequest request, HttpReplyPtr reply) {
  Result<DraftOffer> offer = ReadBody<DraftOffer>(request.body, ReadDraftOffer);
  if (!offer.ok()) return Reply(kSplitDrafts, *reply, ErrorResponse(offer.status()));
  // An answer that is being chosen has the model, which is not another one before it has ended.
  const std::optional<ModelUse> use = gate_.Look();
  if (!use) {
    return Reply(kSplitDrafts, *reply,
                 ErrorResponse(Error(Code::kNotFound, "drafts while no answer is being chosen")));
  }
  const Tokenizer& tokenizer = ModelAccess::EngineOf(*use->served().model).tokenizer();
  Reply(kSplitDrafts, *reply, TakeOffer(end_drafts_, EndOf(request), *std::move(offer), tokenizer));
}

// As drafts, for a prompt that is being read.
void Service::OnSplitStates(HttpRequest request, HttpReplyPtr reply) {
  const std::optional<ModelUse> use = gate_.Look();
  const std::string_view name =
      std::string_view(request.path).substr(std::min(request.path.size(), kSplitStates.size() - 1));
  CloudCut::TakeStates(use ? use->served().cuts.get() : nullptr, EndOf(request), name, request.body,
                       std::move(reply));
}

// As many bytes as it is asked for: how fast the link is, is for who asks to measure.
void Service::OnSplitMeasure(HttpRequest request, HttpReplyPtr reply) {
  constexpr std::size_t kMost = 1 << 20;
  const std::optional<ModelUse> use = gate_.Look();
  if (!use || !use->served().for_ends) return Reply(kSplitMeasure, *reply, NotForEnds());
  const Result<std::size_t> bytes = ReadBody<std::size_t>(
      request.body,
      [](const JsonValue& json) -> std::size_t { return json.At("bytes").Count(0, kMost); });
  if (!bytes.ok()) return Reply(kSplitMeasure, *reply, ErrorResponse(bytes.status()));
  Reply(kSplitMeasure, *reply, {.content_type = "text/plain", .body = std::string(*bytes, 'x')});
}

void Service::OnCluster(HttpRequest, HttpReplyPtr reply) {
  TellOfCluster(kCluster, &ServedModel::cluster, *reply);
}

void Service::OnClusterPlan(HttpRequest, HttpReplyPtr reply) {
  TellOfCluster(kClusterPlan, &ServedModel::cluster_plan, *reply);
}

void Service::TellOfCluster(std::string_view path, std::function<Json()> ServedModel::*tell,
                            HttpReply& reply) {
  const std::optional<ModelUse> use = gate_.Look();
  if (use && use->served().*tell) {
    return Reply(path, reply, {.body = (use->served().*tell)().Dump()});
  }
  Reply(path, reply, ErrorResponse(Error(Code::kNotFound, "this server is of no cluster")));
}

void Service::OnClusterOrder(std::string_view path, HttpReply& reply) {
  const std::optional<ModelUse> use = gate_.Look();
  const std::string name(path.substr(kCluster.size() + 1));
  if (!use || !use->served().cluster_orders.contains(name)) {
    return Reply(path, reply,
                 ErrorResponse(Error(Code::kNotFound, "this server is of no cluster")));
  }
  const Result<std::string> done = use->served().cluster_orders.at(name)();
  Reply(path, reply,
        done.ok() ? HttpResponse{.body = Json{{"says", *done}}.Dump()}
                  : ErrorResponse(done.status()));
}

// Without a model its counters are zero, as those of the next one are when it begins.
void Service::OnMetrics(HttpRequest, HttpReplyPtr reply) {
  BesideModel beside{.parked = gate_.parked(),
                     .passed_over = passed_over_.requests(),
                     .kept = facts()->memory->taken(),
                     .ends = errands_.counters()};
  if (const HttpServer* const server = server_) beside.transport = server->counters();
  if (const AccessLogSwitch* const log = log_) beside.log = log->counters();
  const std::optional<ModelUse> use = gate_.Look();
  if (use && use->served().more) beside.more = use->served().more();
  if (use && use->served().for_ends) TellTurns(end_turns_, beside.more);
  Metrics of_model = use ? use->served().model->metrics() : Metrics();
  of_model.requests_refused += refused_;
  Reply(kMetrics, *reply,
        {.content_type = "text/plain; version=0.0.4; charset=utf-8",
         .body = metrics_.Page(of_model, facts()->plan, beside)});
}

}  // namespace troupe
