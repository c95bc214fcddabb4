#include "server/service.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "api/model_access.h"
#include "server/answer_count.h"
#include "server/api_error.h"
#include "server/service_paths.h"

namespace troupe {
namespace {

constexpr int kClientLeft = 499;  // no status of HTTP, but of metrics

}  // namespace

struct Service::ParkedTimes {
  std::chrono::steady_clock::time_point until;
  bool own = false;  // the request's own time, or that of all requests
};

std::uint64_t Service::SecondsNow() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(
                                        std::chrono::system_clock::now().time_since_epoch())
                                        .count());
}

Service::Service(ServedModel& first, std::chrono::milliseconds pulse)
    : gate_(first),
      facts_(std::make_shared<const Facts>(FactsOf(first))),
      facts_told_(facts_),
      started_(SecondsNow()),
      pulse_(pulse),
      feed_([this] { return LiveEvents(); }, {}) {}

Service::Facts Service::FactsOf(const ServedModel& served) {
  Facts facts{
      .options = served.options,
      .plan = served.model->plan(),
      .chat_template = ModelAccess::EngineOf(*served.model).tokenizer().vocab().chat_template,
      .is_node = served.cluster != nullptr,
      .memory = std::make_shared<const RequestMemory>(
          std::max(kKeptByRequests, served.model->plan().requests))};
  if (served.quality) facts.plan.lossiness = served.quality->text;
  return facts;
}

std::shared_ptr<const Service::Facts> Service::facts() const {
  const MutexLock lock(mu_);
  return facts_;
}

void Service::set_facts(Facts facts) {
  auto shared = std::make_shared<const Facts>(std::move(facts));
  const MutexLock lock(mu_);
  facts_.swap(shared);
}

void Service::Adopt(const ServiceOptions& options) {
  Facts changed = *facts();
  changed.options = options;
  set_facts(std::move(changed));
}

void Service::Park(const ReloadGate::Limits& limits, std::size_t together) {
  together_ = together;
  gate_.Park(limits);
}

void Service::Reopen(ServedModel& next) {
  set_facts(FactsOf(next));
  gate_.Reopen(next);
}

void Service::AddTo(Router& router) {
  using Tell = void (Service::*)(HttpRequest, HttpReplyPtr);
  const auto tells = [&](std::string path, Router::Door door, Tell tell) {
    router.Add("GET", std::move(path), door, [this, tell](HttpRequest request, HttpReplyPtr reply) {
      (this->*tell)(std::move(request), std::move(reply));
    });
  };
  constexpr auto kOpen = Router::Door::kOpen, kKeyed = Router::Door::kKeyed;
  const auto answers = [&](std::string path, OnAsked answer) {
    router.Add("POST", std::move(path), kKeyed,
               [this, answer](HttpRequest request, HttpReplyPtr reply) {
                 Admit(std::move(request), std::move(reply), answer);
               });
  };
  for (const std::string_view prefix : {"/v1", ""}) {
    answers(fmt::format("{}/chat/completions", prefix), &Service::OnChat);
    answers(fmt::format("{}/responses", prefix), &Service::OnResponses);
    answers(fmt::format("{}/responses/input_tokens", prefix), &Service::OnInputTokens);
    answers(fmt::format("{}/completions", prefix), &Service::OnCompletion);
    answers(fmt::format("{}/embeddings", prefix), &Service::OnEmbeddings);
    tells(fmt::format("{}/models", prefix), kKeyed, &Service::OnModels);
    tells(fmt::format("{}/models/*", prefix), kKeyed, &Service::OnModel);
    tells(fmt::format("{}/health", prefix), kOpen, &Service::OnHealth);
  }
  answers(std::string(kMessages), &Service::OnMessages);
  answers(std::string(kCountTokens), &Service::OnCountTokens);
  answers(std::string(kTokenize), &Service::OnTokenize);
  answers(std::string(kDetokenize), &Service::OnDetokenize);
  answers(std::string(kLlamaCompletion), &Service::OnLlamaCompletion);
  answers(std::string(kInfill), &Service::OnInfill);
  answers(std::string(kApplyTemplate), &Service::OnApplyTemplate);
  answers(std::string(kSplitAnswers), &Service::OnSplitAnswer);
  tells(std::string(kSplitHello), kKeyed, &Service::OnSplitHello);
  const auto takes = [&](std::string_view path, Tell tell) {
    router.Add("POST", std::string(path), kKeyed,
               [this, tell](HttpRequest request, HttpReplyPtr reply) {
                 (this->*tell)(std::move(request), std::move(reply));
               });
  };
  takes(kSplitDrafts, &Service::OnSplitDrafts);
  takes(kSplitStates, &Service::OnSplitStates);
  takes(kSplitMeasure, &Service::OnSplitMeasure);
  tells(std::string(kProps), kKeyed, &Service::OnProps);
  tells(std::string(kSlots), kKeyed, &Service::OnSlots);
  tells(std::string(kVersion), kKeyed, &Service::OnVersion);
  AddHintsTo(router);
  for (const char* method : {"GET", "POST", "DELETE"}) {
    router.Add(method, std::string(kOllamas), kKeyed,
               [this](HttpRequest request, HttpReplyPtr reply) {
                 OnOllama(std::move(request), std::move(reply));
               });
  }
  tells(std::string(kCluster), kKeyed, &Service::OnCluster);
  tells(std::string(kClusterPlan), kKeyed, &Service::OnClusterPlan);
  for (const std::string_view path : {kClusterDrain, kClusterPlace, kClusterReadmit}) {
    router.Add("POST", std::string(path), Router::Door::kOrder,
               [this, path](HttpRequest, HttpReplyPtr reply) { OnClusterOrder(path, *reply); });
  }
  tells(std::string(kMetrics), kKeyed, &Service::OnMetrics);
  tells(std::string(kStart), kOpen, &Service::OnPage);
  tells(std::string(kLive), kKeyed, &Service::OnLive);
  router.WhenRefused([this](const std::string& path, int status) {
    metrics_.CountRequest(EndpointOf(path), status);
  });
}

void Service::Reply(std::string_view endpoint, HttpReply& reply, HttpResponse response) {
  metrics_.CountRequest(endpoint, response.status);
  reply.Send(std::move(response));
}

// A client that leaves while it is parked is forgotten. An answer that has begun listens for its
// client by itself, in place of this.
void Service::Admit(HttpRequest request, HttpReplyPtr reply, OnAsked answer) {
  const std::uint64_t id = gate_.NextId();
  const auto came = std::chrono::steady_clock::now();
  const std::string path = request.path;
  const ErrorStyle style = StyleOf(request);
  reply->WhenGone([this, id, path] {
    if (gate_.Leave(id)) metrics_.CountRequest(EndpointOf(path), kClientLeft);
  });
  const auto waiting = std::make_shared<ParkedReply>(std::move(reply));
  auto refuse = [this, path, style, waiting](const Status& why) {
    Reply(EndpointOf(path), *waiting, ErrorResponse(why, style));
  };
  const auto kept = std::make_shared<HttpRequest>(std::move(request));
  auto begin = [this, answer, came, kept, waiting](ModelUse use) {
    (this->*answer)({.request = std::move(*kept),
                     .reply = waiting,
                     .use = std::move(use),
                     .came = came,
                     .facts = facts()});
  };
  const auto times = std::make_shared<ParkedTimes>();
  auto places = [this, path, came, kept, waiting, times] {
    *times = TimesOf(*kept, came);
    if (AsksForStream(EndpointOf(path), kept->body)) {
      waiting->WaitAs(MakeWaitingStream(EndpointOf(path), [this] {
        return OpenAiHead{
            .id = NewId("resp_"), .model = facts()->options.name, .created = SecondsNow()};
      }));
      const auto say = [weak = std::weak_ptr(waiting)] {
        const auto still = weak.lock();
        return still && still->Wait();
      };
      waiting->WhenDoubted(say);
      pulse_.Add(say);
    } else {  // it is told nothing while it waits, also where it may have left
      waiting->WhenDoubted([] { return false; });
    }
    return CountAnswers(EndpointOf(path), kept->body, together_);
  };
  gate_.Enter(
      id, {.begin = std::move(begin), .refuse = std::move(refuse), .places = std::move(places)});
  if (gate_.IsParked(id)) WatchParked(id, *times);
}

Service::ParkedTimes Service::TimesOf(const HttpRequest& request,
                                      std::chrono::steady_clock::time_point came) const {
  const std::shared_ptr<const Facts> facts = this->facts();
  std::optional<std::chrono::nanoseconds> own = TimeoutOf(request.body);
  const std::optional<std::chrono::nanoseconds> most = facts->options.most_time;
  if (most) own = std::min(own.value_or(*most), *most);
  ParkedTimes times{.until = came + facts->options.most_parked, .own = false};
  if (own && came + *own <= times.until) times = {.until = came + *own, .own = true};
  return times;
}

void Service::WatchParked(std::uint64_t id, const ParkedTimes& times) {
  pulse_for_parked_.Add([this, id, times] {
    if (std::chrono::steady_clock::now() < times.until) return gate_.IsParked(id);
    gate_.Refuse(
        id, times.own
                ? Error(Code::kDeadlineExceeded,
                        "the request's timeout has passed while a model was being loaded")
                : Error(Code::kUnavailable, "the model is still being loaded; try again later"));
    return false;
  });
}

std::string Service::NewId(std::string_view kind) {
  return fmt::format("{}{:x}{:06x}", kind, started_, ids_.fetch_add(1));
}

JobListener Service::ListenerFor(std::string_view endpoint) {
  return {.on_first = [this](double seconds) { first_token_.Add(seconds); },
          .on_gap =
              [this](double seconds) {
                metrics_.OnGap(seconds);
                between_tokens_.Add(seconds);
              },
          .on_end = [this, endpoint](const JobEnd& end) { metrics_.OnEnd(endpoint, end); }};
}

}  // namespace troupe
