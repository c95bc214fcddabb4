#include "api/callbacks.h"

#include <utility>

#include "api/conversions.h"

namespace troupe {

Callbacks::Callbacks(OnPiece on_piece, OnEnd on_end)
    : on_piece_(std::move(on_piece)), on_end_(std::move(on_end)) {}

bool Callbacks::Show(std::string_view text) {
  const MutexLock lock(mu_);
  if (wanted_ != Wanted::kAll) return false;
  if (!on_piece_) return true;
  caller_ = std::this_thread::get_id();
  bool more = false;
  try {
    more = on_piece_({.text = text, .tokens = tokens_});
  } catch (...) {  // not ours: it must not take the engine's thread with it
  }
  caller_ = std::thread::id();
  return more;
}

void Callbacks::End(const Result<GenerateResult>& answer) {
  // Destroyed outside the lock: what they hold may hold the handle, which stops all.
  OnPiece on_piece;
  OnEnd on_end;
  const MutexLock lock(mu_);
  std::swap(on_piece, on_piece_);
  std::swap(on_end, on_end_);
  if (wanted_ == Wanted::kNothing || !on_end) return;
  caller_ = std::this_thread::get_id();
  try {
    on_end(answer.ok() ? Result<Answer>(ToAnswer(*answer)) : Result<Answer>(answer.status()));
  } catch (...) {  // nobody is left to be told
  }
  caller_ = std::thread::id();
}

void Callbacks::Stop(Wanted most) {
  Wanted now = wanted_;
  while (now < most && !wanted_.compare_exchange_weak(now, most)) {
  }
  if (caller_.load() == std::this_thread::get_id()) return;
  const MutexLock lock(mu_);  // a call under way holds it
}

}  // namespace troupe
