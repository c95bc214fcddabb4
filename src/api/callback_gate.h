// What one request calls of its caller (Callbacks, troupe/model.h), and what it promises about
// them: none is called after the caller has said that it wants no more, an exception does not pass,
// and all are let go after the end. The engine's thread calls; who stops it may be on any thread.
#pragma once

#include <troupe/model.h>

#include <atomic>
#include <span>
#include <string_view>
#include <thread>

#include "base/mutex.h"
#include "base/status.h"

namespace troupe {

class CallbackGate {
 public:
  explicit CallbackGate(Callbacks callbacks) : callbacks_(std::move(callbacks)) {}

  // Somebody wants the logits of the prompt. Before the start.
  bool shows_prompt() const {
    const MutexLock lock(mu_);
    return callbacks_.on_prompt != nullptr;
  }
  // Before the first token: the answer has that many already.
  void CountBegun(std::size_t tokens) { tokens_ = tokens; }

  // The engine's thread. Each part of the prompt that was read, each token, then its text, and
  // once, after all, the end.
  bool Read(std::size_t read, std::size_t all);  // false: no more is wanted
  void ShowPrompt(TokenId token, std::span<const float> logits);
  Status Choose(TokenId token, std::span<const float> logits);
  bool Show(std::string_view text);  // false: no more is wanted
  void End(const Result<Answer>& answer);

  // No piece, or nothing at all, is told once these have returned: they wait for a call under way,
  // unless that call itself asks.
  void StopPieces() { Stop(Wanted::kEnd); }
  void StopAll() { Stop(Wanted::kNothing); }

 private:
  enum class Wanted { kAll, kEnd, kNothing };

  // Calls, and notes while it does so who calls. False if it threw.
  template <typename Call>
  bool Guarded(Call call) TROUPE_REQUIRES(mu_);
  void Stop(Wanted most);

  std::size_t tokens_ = 0;
  std::atomic<Wanted> wanted_{Wanted::kAll};
  std::atomic<std::thread::id> caller_{};  // the thread that is in a call, by which it knows itself
  mutable Mutex mu_;                       // held during a call
  Callbacks callbacks_ TROUPE_GUARDED_BY(mu_);
};

}  // namespace troupe
