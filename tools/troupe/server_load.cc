#include "troupe/server_load.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/json.h"
#include "base/rng.h"
#include "troupe/bench_text.h"
#include "troupe/completion_events.h"

namespace troupe {
namespace {

constexpr std::size_t kMostOfAnError = 4096;

Result<Json> AskJson(const AskedServer& server, HttpRequest request) {
  const std::string path = request.path;
  TROUPE_ASSIGN_OR_RETURN(const std::string body, AskServer(server, std::move(request)));
  std::optional<Json> json = Json::Parse(body);
  if (!json) return DataLoss("{}{}: an answer that is no JSON", server.url.ToString(), path);
  return *std::move(json);
}

std::string BodyOf(const PlannedRequest& request, const TargetFacts& facts) {
  // Tokens and not a text, so that their number is known; drawn one by one, so that no two prompts
  // begin alike and none is found in a prefix cache.
  Rng rng(request.seed);
  std::vector<std::uint32_t> prompt(request.lengths.prompt);
  for (std::uint32_t& token : prompt) token = facts.tokens[rng.Below(facts.tokens.size())];
  return Json{{"prompt", prompt},
              {"max_tokens", request.lengths.answer},
              {"ignore_eos", true},
              {"temperature", 0.8},
              {"seed", request.seed},
              {"stream", true},
              {"stream_options", Json{{"include_usage", true}}}}
      .Dump();
}

class LoadRun {
 public:
  LoadRun(const AskedServer& target, const TargetFacts& facts, std::span<const PlannedRequest> plan,
          std::size_t clients)
      : target_(target), facts_(facts), plan_(plan), clients_(clients), client_(target.client) {
    seen_.answers.resize(plan.size());
  }

  SeenLoad Run() {
    StartDue();
    client_.Run();
    seen_.seconds = watch_.Seconds();
    return std::move(seen_);
  }

 private:
  struct Running {
    double start = 0;  // from which its times count
    double late = 0;   // that it was sent after that
    int status = 0;
    std::string error;  // the body of a response that is one
    CompletionEvents events;
  };

  void StartDue() {
    while (next_ < plan_.size() && (clients_ == 0 || running_ < clients_)) {
      const double left = plan_[next_].at - watch_.Seconds();
      if (left > 0) return StartLater(left);
      Start(next_++);
    }
  }

  void StartLater(double seconds) {
    if (std::exchange(timer_set_, true)) return;
    client_.After(std::chrono::duration_cast<std::chrono::nanoseconds>(
                      std::chrono::duration<double>(seconds)),
                  [this] {
                    timer_set_ = false;
                    StartDue();
                  });
  }

  void Start(std::size_t index) {
    ++running_;
    const auto running = std::make_shared<Running>();
    const double now = watch_.Seconds();
    running->start = clients_ == 0 ? plan_[index].at : now;
    running->late = now - running->start;
    client_.Start(
        target_.url,
        {.method = "POST",
         .path = "/v1/completions",
         .headers = HeadersFor(target_),
         .body = BodyOf(plan_[index], facts_)},
        {.on_head = [running](const HttpResponse& head) { running->status = head.status; },
         .on_piece = [this, running](std::string_view piece) { Take(*running, piece); },
         .on_end =
             [this, running, index](const Status& status) {
               seen_.answers[index] = Seen(*running, status);
               --running_;
               StartDue();
             }});
  }

  void Take(Running& running, std::string_view piece) const {
    if (running.status < 300) {
      running.events.Take(piece, watch_.Seconds());
    } else {
      running.error +=
          piece.substr(0, kMostOfAnError - std::min(kMostOfAnError, running.error.size()));
    }
  }

  SeenAnswer Seen(const Running& running, const Status& ended) const {
    SeenAnswer seen{.status = ended, .late = running.late};
    if (seen.status.ok()) {
      seen.status = JudgeAnswer(target_, "/v1/completions", running.status, running.error);
    }
    if (seen.status.ok()) seen.status = running.events.End();
    const std::vector<double>& times = running.events.text_times();
    if (!times.empty()) seen.first = times.front() - running.start;
    for (std::size_t i = 1; i < times.size(); ++i) seen.gaps.push_back(times[i] - times[i - 1]);
    seen.whole = watch_.Seconds() - running.start;
    seen.prompt_tokens = running.events.prompt_tokens();
    seen.tokens = running.events.tokens();
    return seen;
  }

  const AskedServer& target_;
  const TargetFacts& facts_;
  const std::span<const PlannedRequest> plan_;
  const std::size_t clients_;
  HttpClient client_;
  const Stopwatch watch_;
  std::size_t next_ = 0, running_ = 0;
  bool timer_set_ = false;
  SeenLoad seen_;
};

}  // namespace

Result<TargetFacts> LookAt(const AskedServer& target) {
  TROUPE_ASSIGN_OR_RETURN(const Json props, AskJson(target, {.method = "GET", .path = "/props"}));
  TROUPE_ASSIGN_OR_RETURN(
      const Json told,
      AskJson(target, {.method = "POST",
                       .path = "/tokenize",
                       .body = Json{{"content", std::string(kBenchText)}}.Dump()}));
  TargetFacts facts;
  if (const Json* context = props.Find("context"); context != nullptr && context->IsCount()) {
    facts.context = context->AsCount();
  }
  const Json* tokens = told.Find("tokens");
  if (tokens == nullptr || !tokens->IsArray() || tokens->size() == 0) {
    return DataLoss("{}/tokenize: no tokens in its answer", target.url.ToString());
  }
  for (const Json& token : tokens->items()) {
    if (!token.IsCount()) {
      return DataLoss("{}/tokenize: a token that is no id", target.url.ToString());
    }
    facts.tokens.push_back(static_cast<std::uint32_t>(token.AsCount()));
  }
  std::ranges::sort(facts.tokens);
  facts.tokens.erase(std::unique(facts.tokens.begin(), facts.tokens.end()), facts.tokens.end());
  return facts;
}

SeenLoad RunLoad(const AskedServer& target, const TargetFacts& facts,
                 std::span<const PlannedRequest> plan, std::size_t clients) {
  return LoadRun(target, facts, plan, clients).Run();
}

}  // namespace troupe
