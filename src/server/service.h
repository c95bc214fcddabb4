// The endpoints of one model: what each path answers, as handlers for the router. All thread-safe;
// answers go on after a handler has returned.
#pragma once

#include <troupe/model.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "server/chat_ask.h"
#include "server/http/http_server.h"
#include "server/live_feed.h"
#include "server/recent_times.h"
#include "server/router.h"
#include "server/serve_metrics.h"

namespace troupe {

struct ServiceOptions {
  std::string name;             // of the model, as clients know it
  Sampling sampling;            // of requests that say nothing
  bool seed_is_given = false;   // in it; otherwise each request that names none has its own
  std::size_t most_tokens = 0;  // of an answer; 0: what the context holds
};

class Service {
 public:
  // The model must outlive it, and be closed before it goes.
  Service(Model& model, ServiceOptions options);

  void AddTo(Router& router);
  // Ends what has no end of its own: the streams of those who watch. For good, before a drain.
  void EndWatching() { feed_.Close(); }
  // Counters of the transport, for /metrics; null: none are told.
  void set_server(const HttpServer* server) { server_ = server; }

 private:
  void OnChat(HttpRequest request, HttpReplyPtr reply);
  void OnResponses(HttpRequest request, HttpReplyPtr reply);
  void OnCompletion(HttpRequest request, HttpReplyPtr reply);
  void OnMessages(HttpRequest request, HttpReplyPtr reply);
  void OnCountTokens(HttpRequest request, HttpReplyPtr reply);
  void OnTokenize(HttpRequest request, HttpReplyPtr reply);
  void OnDetokenize(HttpRequest request, HttpReplyPtr reply);
  void OnModels(HttpRequest request, HttpReplyPtr reply);
  void OnProps(HttpRequest request, HttpReplyPtr reply);
  void OnHealth(HttpRequest request, HttpReplyPtr reply);
  void OnPage(HttpRequest request, HttpReplyPtr reply);
  void OnLive(HttpRequest request, HttpReplyPtr reply);
  void OnMetrics(HttpRequest request, HttpReplyPtr reply);

  Request Defaults() const;
  Result<AnswerReading> Prepare(const ChatAsk& ask, Request& request);
  std::string NewId(std::string_view kind);
  JobListener ListenerFor(std::string_view endpoint);
  std::string StateEvent() const;

  Model& model_;
  const ServiceOptions options_;
  const std::uint64_t started_;  // seconds since 1970
  std::atomic<const HttpServer*> server_ = nullptr;
  std::atomic<std::uint64_t> ids_ = 0;
  ServeMetrics metrics_;
  RecentTimes first_token_{128}, between_tokens_{1024};
  LiveFeed feed_;  // last: its thread uses the others
};

}  // namespace troupe
