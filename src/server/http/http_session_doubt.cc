// A connection whose client sends nothing more: whether it has left, or waits for its answer.
#include <chrono>
#include <memory>
#include <optional>

#include "server/http/http_session.h"

namespace troupe {
namespace {

// How often it is looked whether one that sends nothing more and was written something has left.
constexpr std::chrono::milliseconds kLookForReset(100);
// Something is written to it at each of the first 20 looks, and then at each tenth: what stands
// between may have taken what was written first, as a tunnel does, and learns of the reset only
// then.
constexpr unsigned kLooksThatSpeak = 20, kLooksBetween = 10;
// When one that nothing could be said to is asked about again.
constexpr std::chrono::seconds kAskAgain(1);

}  // namespace

// The client sends nothing more: it has left, but for one that waits for its answer all the same,
// as `nc -N` does. Only what is written shows the difference: one that has left resets the
// connection.
void HttpSession::OnEndOfRequests() {
  if (closed_ || lingers_ || !exchange_ || !wire_->MayRead()) return Close();
  exchange_->CloseAfter();
  Doubt(/*looks=*/0);
}

void HttpSession::Doubt(unsigned looks) {
  owner_.Elsewhere([looks, exchange = exchange_, weak = weak_from_this(), gate = owner_.gate()] {
    const std::optional<bool> said = exchange->AskInDoubt();
    gate->Post([looks, said, weak] {
      const auto self = weak.lock();
      if (!self || self->closed_ || !self->exchange_) return;
      if (said.value_or(false)) return self->WatchReset(looks);
      // At the first look a request has just come: who will answer it may not have been there to
      // be asked, and some are answered before anybody need be.
      const bool just_came = looks == 0;
      if (!just_came && !self->exchange_->ended()) return self->Close();
      const std::chrono::milliseconds then = just_came && said ? kLookForReset : kAskAgain;
      self->wire_->StartTimer(HttpWire::Timer::kRead, then, [weak] {
        const auto waited = weak.lock();
        if (waited && !waited->closed_ && waited->exchange_) waited->Doubt(/*looks=*/1);
      });
    });
  });
}

void HttpSession::WatchReset(unsigned looks) {
  wire_->StartTimer(HttpWire::Timer::kRead, kLookForReset, [looks, weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self || self->closed_ || !self->exchange_) return;
    if (!self->wire_->MayRead()) return self->Close();
    const unsigned next = looks + 1;
    const bool speaks = next <= kLooksThatSpeak || next % kLooksBetween == 0;
    if (!speaks || self->writing_) return self->WatchReset(next);
    self->Doubt(next);
  });
}

}  // namespace troupe
