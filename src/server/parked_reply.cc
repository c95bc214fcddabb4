#include "server/parked_reply.h"

#include <utility>

#include "base/json.h"
#include "server/api_error.h"
#include "server/service_paths.h"
#include "server/sse.h"

namespace troupe {
namespace {

// What a stream of that endpoint ends with, of the body that would have been the whole response.
std::string LastEventOf(std::string_view endpoint, const std::string& error) {
  if (StyleOf(endpoint) == ErrorStyle::kAnthropic) return EventOf("error", error);
  if (endpoint != kResponses) return EventOf(error) + EventOf("[DONE]");
  Json event = {{"type", "error"}, {"sequence_number", 0}};
  if (const auto body = Json::Parse(error); body && body->Find("error") != nullptr) {
    event.Update(*body->Find("error"));
    event["type"] = "error";
  }
  return EventOf("error", event.Dump());
}

}  // namespace

bool ParkedReply::Wait() {
  const MutexLock lock(mu_);
  if (answered_) return false;
  if (!std::exchange(begun_, true)) reply_->Begin(StreamHead());
  return reply_->Write(CommentEvent("the model is being loaded"));
}

bool ParkedReply::Answer() {
  const MutexLock lock(mu_);
  answered_ = true;
  return begun_;
}

void ParkedReply::Send(HttpResponse response) {
  if (!Answer()) return reply_->Send(std::move(response));
  reply_->Write(response.status == 200 ? response.body : LastEventOf(endpoint_, response.body));
  reply_->End();
}

void ParkedReply::Begin(HttpResponse head) {
  if (!Answer()) reply_->Begin(std::move(head));
}

}  // namespace troupe
