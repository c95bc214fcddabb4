// What one request calls of its caller: on_piece with the text, on_end with the answer, and what it
// promises about them: none is called after the caller has said that it wants no more, an exception
// does not pass, and both are let go after the end. The engine's thread calls; who stops it may be
// on any thread.
#pragma once

#include <troupe/model.h>

#include <atomic>
#include <string_view>
#include <thread>

#include "base/mutex.h"
#include "base/status.h"
#include "runtime/generation.h"

namespace troupe {

class Callbacks {
 public:
  Callbacks(OnPiece on_piece, OnEnd on_end);

  // The engine's thread.
  void CountToken() { ++tokens_; }
  bool Show(std::string_view text);                // false: no more is wanted
  void End(const Result<GenerateResult>& answer);  // once, after all pieces

  // No piece, or nothing at all, is told once these have returned: they wait for a call under way,
  // unless that call itself asks.
  void StopPieces() { Stop(Wanted::kEnd); }
  void StopAll() { Stop(Wanted::kNothing); }

 private:
  enum class Wanted { kAll, kEnd, kNothing };

  void Stop(Wanted most);

  std::size_t tokens_ = 0;
  std::atomic<Wanted> wanted_{Wanted::kAll};
  std::atomic<std::thread::id> caller_{};  // the thread that is in a call, by which it knows itself
  Mutex mu_;                               // held during a call
  OnPiece on_piece_ TROUPE_GUARDED_BY(mu_);
  OnEnd on_end_ TROUPE_GUARDED_BY(mu_);
};

}  // namespace troupe
