#include "api/callback_gate.h"

#include <utility>

namespace troupe {

template <typename Call>
bool CallbackGate::Guarded(Call call) {
  caller_ = std::this_thread::get_id();
  bool returned = true;
  try {
    call();
  } catch (...) {  // not ours: it must not take the engine's thread with it
    returned = false;
  }
  caller_ = std::thread::id();
  return returned;
}

bool CallbackGate::Read(std::size_t read, std::size_t all) {
  const MutexLock lock(mu_);
  if (wanted_ != Wanted::kAll) return false;
  const OnRead& on_read = callbacks_.on_read;
  return !on_read || Guarded([&] { on_read(read, all); });
}

void CallbackGate::ShowPrompt(TokenId token, std::span<const float> logits) {
  const MutexLock lock(mu_);
  if (wanted_ != Wanted::kAll) return;
  const auto& on_prompt = callbacks_.on_prompt;
  if (!Guarded([&] { on_prompt(token, logits); })) wanted_ = Wanted::kEnd;
}

Status CallbackGate::Choose(TokenId token, std::span<const float> logits) {
  const MutexLock lock(mu_);
  ++tokens_;
  // A token that nobody may be told of any more is no part of the answer.
  if (wanted_ != Wanted::kAll) return Status(Code::kCancelled, "cancelled");
  const OnLogits& on_logits = callbacks_.on_logits;
  if (!on_logits) return OkStatus();
  Status told;
  if (!Guarded([&] { told = on_logits(token, logits); })) {
    return Error(Code::kInternal, "on_logits threw an exception");
  }
  return told;
}

bool CallbackGate::Show(std::string_view text) {
  const MutexLock lock(mu_);
  if (wanted_ != Wanted::kAll) return false;
  const OnPiece& on_piece = callbacks_.on_piece;
  if (!on_piece) return true;
  const Piece piece{.text = text, .tokens = tokens_};
  bool more = false;
  return Guarded([&] { more = on_piece(piece); }) && more;
}

void CallbackGate::End(const Result<Answer>& answer) {
  Callbacks let_go;  // outside the lock: what they hold may hold the handle, which stops all
  const MutexLock lock(mu_);
  std::swap(let_go, callbacks_);
  if (wanted_ == Wanted::kNothing || !let_go.on_end) return;
  Guarded([&] { let_go.on_end(answer); });  // who throws is told nothing more anyway
}

void CallbackGate::Stop(Wanted most) {
  Wanted now = wanted_;
  while (now < most && !wanted_.compare_exchange_weak(now, most)) {
  }
  if (caller_.load() == std::this_thread::get_id()) return;
  const MutexLock lock(mu_);  // a call under way holds it
}

}  // namespace troupe
