// The reply of a request that may have to wait for the next model: if it asked for a stream, the
// stream begins while it waits, and says at each beat that the server lives. What is answered then
// goes on in it, an error as its last event. Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "server/http/http_reply.h"

namespace troupe {

class ParkedReply final : public HttpReply {
 public:
  // `endpoint` is one of service_paths.h: how errors are told in its streams.
  ParkedReply(HttpReplyPtr reply, std::string endpoint)
      : reply_(std::move(reply)), endpoint_(std::move(endpoint)) {}

  // A beat in which nobody has answered yet. False: somebody has, or nobody reads.
  bool Wait();

  void Send(HttpResponse response) override;
  void Begin(HttpResponse head) override;
  bool Write(std::string_view bytes) override { return reply_->Write(bytes); }
  void End() override { reply_->End(); }
  void Note(HttpUse use) override { reply_->Note(std::move(use)); }
  void WhenGone(std::function<void()> call) override { reply_->WhenGone(std::move(call)); }

 private:
  // Whether the stream has begun; what is said from now on is the answer.
  bool Answer();

  const HttpReplyPtr reply_;
  const std::string endpoint_;
  Mutex mu_;  // held while a beat is written, so that none comes amid the answer
  bool begun_ TROUPE_GUARDED_BY(mu_) = false;
  bool answered_ TROUPE_GUARDED_BY(mu_) = false;
};

}  // namespace troupe
