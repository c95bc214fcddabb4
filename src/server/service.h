// The endpoints of a served model: what each path answers, as handlers for the router. The model
// can be replaced by another without a request being dropped (reload_gate.h). All thread-safe;
// answers go on after a handler has returned.
#pragma once

#include <troupe/model.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "server/access_log_switch.h"
#include "server/chat_ask.h"
#include "server/end_drafts.h"
#include "server/end_turns.h"
#include "server/errands.h"
#include "server/http/http_server.h"
#include "server/job_requests.h"
#include "server/live_feed.h"
#include "server/llama_completion.h"
#include "server/parked_reply.h"
#include "server/passed_over.h"
#include "server/recent_times.h"
#include "server/reload_gate.h"
#include "server/request_memory.h"
#include "server/router.h"
#include "server/serve_metrics.h"
#include "server/served_model.h"
#include "server/text_job.h"

namespace troupe {

class Service {
 public:
  // A model must be closed before it or the service goes.
  // `pulse`: a stream that is silent from one beat to the next says that it waits.
  explicit Service(ServedModel& first, std::chrono::milliseconds pulse = std::chrono::seconds(5));

  void AddTo(Router& router);
  // Ends what has no end of its own: the streams of those who watch. For good, before a drain.
  void EndWatching() { feed_.Close(); }
  // Counters of the transport, for /metrics; null: none are told.
  void set_server(const HttpServer* server) { server_ = server; }
  void set_log(const AccessLogSwitch* log) { log_ = log; }  // the same

  // What requests that come from now on get where they say nothing; the model stays.
  void Adopt(const ServiceOptions& options);

  // For one thread, which replaces the model: see reload_gate.h. Paths that only tell of the model
  // tell of the one before until the next is in. `together`: sequences of the model that will
  // answer those who wait, the larger number if it may be one of two.
  void Park(const ReloadGate::Limits& limits, std::size_t together);
  bool LimitParkedTo(std::size_t places) { return gate_.LimitTo(places); }
  bool WaitUntilUnused(std::chrono::milliseconds longest) { return gate_.WaitUntilUnused(longest); }
  void Reopen(ServedModel& next);
  void RefuseAll(const Status& why) { gate_.End(why); }
  void CountReload(ReloadEnd end) { metrics_.CountReload(end); }
  void CountReturned(Bytes bytes) { metrics_.CountReturned(bytes); }
  const ReloadGate& gate() const { return gate_; }
  // Until what has ended is told to its clients, as far as these read.
  void FinishErrands() { errands_.Wait(); }

 private:
  // What is told of a model, also while the next one is being opened, and what its requests get.
  struct Facts {
    ServiceOptions options;
    Plan plan;
    std::string chat_template;
    bool is_node = false;                         // of a cluster
    std::shared_ptr<const RequestMemory> memory;  // of the requests to this model
  };
  // A request that uses the model.
  struct Asked {
    HttpRequest request;
    std::shared_ptr<ParkedReply> reply;
    ModelUse use;
    std::chrono::steady_clock::time_point came;
    std::shared_ptr<const Facts> facts;  // of when it began

    struct Body {
      std::shared_ptr<void> held;
      std::string text;
    };

    Model& model() const { return *use.served().model; }
    const ServiceOptions& options() const { return facts->options; }
    // Its memory is given back once it is read, and not when all that it says has become tokens.
    Body TakeBody() {
      return {.held = std::exchange(request.held, nullptr), .text = std::move(request.body)};
    }
  };
  using OnAsked = void (Service::*)(Asked);

  // An end that hears nothing for longer goes on by itself.
  static constexpr std::chrono::milliseconds kPulseForEnds{400};
  // How often it is looked whether a parked request has waited for too long.
  static constexpr std::chrono::milliseconds kPulseForParked{50};

  static std::uint64_t SecondsNow();  // since 1970
  static Facts FactsOf(const ServedModel& served);
  std::shared_ptr<const Facts> facts() const;
  void set_facts(Facts facts);
  void Admit(HttpRequest request, HttpReplyPtr reply, OnAsked answer);
  // A request that waits for a model ends at its own time, and at that of the server.
  struct ParkedTimes;
  ParkedTimes TimesOf(const HttpRequest& request, std::chrono::steady_clock::time_point came) const;
  void WatchParked(std::uint64_t id, const ParkedTimes& times);

  static Request DefaultsFor(const Asked& asked);
  // On the thread that reads requests: those that begin as others end do so on the engine's thread,
  // where nobody's tokens are to wait for it.
  // Leaves the prompts empty, each as soon as its tokens are there.
  static Result<std::vector<std::vector<TokenId>>> TokenizeAll(const Model& model,
                                                               std::span<Prompt> prompts);
  Result<AnswerReading> Prepare(const Asked& asked, const ChatAsk& ask, Request& request);
  void OnChat(Asked asked);
  void OnResponses(Asked asked);
  void OnCompletion(Asked asked);
  void OnMessages(Asked asked);
  void OnCountTokens(Asked asked);
  static Result<Pooling> HowToPool(const Asked& asked);
  void OnEmbeddings(Asked asked);
  void OnSplitAnswer(Asked asked);
  void OnLlamaCompletion(Asked asked);
  void OnInfill(Asked asked);
  void RunLlama(Asked asked, LlamaKind kind, std::string_view endpoint);
  void OnApplyTemplate(Asked asked);
  void OnInputTokens(Asked asked);
  void OnTokenize(Asked asked);
  void OnDetokenize(Asked asked);
  Json ModelJson(const Facts& told) const;
  void OnModels(HttpRequest request, HttpReplyPtr reply);
  void OnModel(HttpRequest request, HttpReplyPtr reply);
  void OnProps(HttpRequest request, HttpReplyPtr reply);
  void OnSlots(HttpRequest request, HttpReplyPtr reply);
  void OnVersion(HttpRequest request, HttpReplyPtr reply);
  void OnOllama(HttpRequest request, HttpReplyPtr reply);
  void AddHintsTo(Router& router);
  void OnSplitHello(HttpRequest request, HttpReplyPtr reply);
  void OnSplitDrafts(HttpRequest request, HttpReplyPtr reply);
  void OnSplitStates(HttpRequest request, HttpReplyPtr reply);
  void OnSplitMeasure(HttpRequest request, HttpReplyPtr reply);
  void OnCluster(HttpRequest request, HttpReplyPtr reply);
  void OnClusterPlan(HttpRequest request, HttpReplyPtr reply);
  void TellOfCluster(std::string_view path, std::function<Json()> ServedModel::*tell,
                     HttpReply& reply);
  void OnClusterOrder(std::string_view path, HttpReply& reply);
  void OnHealth(HttpRequest request, HttpReplyPtr reply);
  void OnPage(HttpRequest request, HttpReplyPtr reply);
  void OnLive(HttpRequest request, HttpReplyPtr reply);
  void OnMetrics(HttpRequest request, HttpReplyPtr reply);

  // Limits its tokens to what can be held, or fails.
  static Status FitAnswer(const Asked& asked, JobRequests& requests, JobOptions& options);
  // `kept`: what the format keeps of the request.
  void Run(Asked asked, JobRequests requests, JobOptions options,
           std::unique_ptr<AnswerFormat> format, Bytes kept, std::string_view endpoint);
  std::string NewId(std::string_view kind);
  // Sends and counts what is answered at once.
  void Reply(std::string_view endpoint, HttpReply& reply, HttpResponse response);
  JobListener ListenerFor(std::string_view endpoint);
  std::string LiveEvents();

  ReloadGate gate_;
  mutable Mutex mu_;
  std::shared_ptr<const Facts> facts_ TROUPE_GUARDED_BY(mu_);
  std::shared_ptr<const Facts> facts_told_;  // to those who watch; the feed's thread's
  const std::uint64_t started_;              // seconds since 1970
  std::atomic<const HttpServer*> server_ = nullptr;
  std::atomic<const AccessLogSwitch*> log_ = nullptr;
  std::atomic<std::uint64_t> refused_ = 0;  // answers that the model was not asked for
  std::atomic<std::size_t> together_ = 1;   // as Park was told
  std::atomic<std::uint64_t> ids_ = 0;
  ServeMetrics metrics_;
  PassedOver passed_over_;
  EndTurns end_turns_;
  EndDrafts end_drafts_;
  Pulse pulse_, pulse_for_ends_{kPulseForEnds}, pulse_for_parked_{kPulseForParked};
  RecentTimes first_token_{128}, between_tokens_{1024};
  LiveFeed feed_;    // its thread uses the others
  Errands errands_;  // so does this one's
};

}  // namespace troupe
