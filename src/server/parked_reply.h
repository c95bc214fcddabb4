// The reply of a request that may have to wait for the next model: if it asked for a stream, the
// stream begins while it waits, and says at each beat that the server lives. What is answered then
// goes on in it, an error as its last event. Thread-safe.
#pragma once

#include <memory>
#include <utility>

#include "base/mutex.h"
#include "server/http/http_reply.h"
#include "server/waiting_stream.h"

namespace troupe {

class ParkedReply final : public HttpReply {
 public:
  explicit ParkedReply(HttpReplyPtr reply) : reply_(std::move(reply)) {}

  // What a client that asked for a stream hears from now on. Once.
  void WaitAs(std::unique_ptr<WaitingStream> stream);
  // A beat in which nobody has answered yet. False: somebody has, or nobody reads.
  bool Wait();
  // The last beat was: who answers goes on with what has been told, and says itself that it lives.
  ToldWaiting TakeOver();

  void Send(HttpResponse response) override;
  void Begin(HttpResponse head) override;
  bool Write(std::string_view bytes) override { return reply_->Write(bytes); }
  void End() override { reply_->End(); }
  void Break(int status) override { reply_->Break(status); }
  bool MayBreak() const override { return reply_->MayBreak(); }
  void Note(HttpUse use) override { reply_->Note(std::move(use)); }
  void WhenGone(std::function<void()> call) override { reply_->WhenGone(std::move(call)); }
  void WhenDoubted(std::function<bool()> call) override { reply_->WhenDoubted(std::move(call)); }

 private:
  const HttpReplyPtr reply_;
  Mutex mu_;  // held while a beat is written, so that none comes amid the answer
  std::unique_ptr<WaitingStream> stream_ TROUPE_GUARDED_BY(mu_);  // null: it waits in silence
  bool begun_ TROUPE_GUARDED_BY(mu_) = false;                     // the response
  bool answered_ TROUPE_GUARDED_BY(mu_) = false;
};

}  // namespace troupe
