#include "server/waiting_stream.h"

#include <optional>
#include <utility>

#include "base/json.h"
#include "server/api_error.h"
#include "server/responses_events.h"
#include "server/service_paths.h"
#include "server/sse.h"

namespace troupe {
namespace {

// OpenAI's chats and completions, and llama-server's: they have no event without a choice.
class WaitingComments final : public WaitingStream {
 public:
  std::string Beat() override { return CommentEvent("the model is being loaded"); }
  std::string Refused(const HttpResponse& refusal) override {
    return EventOf(refusal.body) + EventOf("[DONE]");
  }
};

// Messages may hold pings anywhere.
class WaitingMessage final : public WaitingStream {
 public:
  std::string Beat() override { return EventOf("ping", R"({"type":"ping"})"); }
  std::string Refused(const HttpResponse& refusal) override {
    return EventOf("error", refusal.body);
  }
};

// OpenAI's SDK wants a response's creation before any other event of it. What it repeats of the
// request comes with the first event of the model: kept here it could take more than the body.
class WaitingResponse final : public WaitingStream {
 public:
  explicit WaitingResponse(std::function<OpenAiHead()> head) : make_head_(std::move(head)) {}

  std::string Beat() override {
    std::string events;
    if (told_.events == 0) {
      told_.head = make_head_();
      events = Event("response.created", ResponseJson(told_.head, "queued"));
    }
    return events += Event("response.queued", ResponseJson(told_.head, "queued"));
  }
  std::string Refused(const HttpResponse& refusal) override {
    Json response = ResponseJson(told_.head, "failed");
    response["error"] = ResponseFailure(StatusIn(refusal));
    return Event("response.failed", std::move(response));
  }
  ToldWaiting told() const override { return told_; }

 private:
  std::string Event(std::string_view type, Json response) {
    return ResponsesEvent(type, told_.events++, {{"response", std::move(response)}});
  }

  const std::function<OpenAiHead()> make_head_;
  ToldWaiting told_;
};

}  // namespace

std::unique_ptr<WaitingStream> MakeWaitingStream(std::string_view endpoint,
                                                 std::function<OpenAiHead()> head) {
  if (endpoint == kResponses) return std::make_unique<WaitingResponse>(std::move(head));
  if (endpoint == kMessages) return std::make_unique<WaitingMessage>();
  return std::make_unique<WaitingComments>();
}

}  // namespace troupe
