// A sequence of the engine that guesses for itself (text/draft/draft_model.h): its next tokens are
// computed by the experts in memory alone, which reads nothing, and are forgotten again, keys and
// values with them, before the pass that checks them. The experts that are missed are read ahead
// meanwhile (expert/prefetch/named_ahead.h). Threads: one at a time, as for the engine.
#pragma once

#include "runtime/session.h"
#include "text/draft/draft_model.h"

namespace troupe {

class ResidentDraft final : public DraftSequence {
 public:
  // The session must outlive it, unless nothing is asked of it any more; the request pays for what
  // is read. REQUIRES: Engine::DraftsByResidents.
  ResidentDraft(Session& session, RequestId request) : session_(session), request_(request) {}

  std::span<const TokenId> tokens() const override { return session_.tokens(); }
  std::size_t most_tokens() const override { return session_.tokens().size() + session_.room(); }
  // Its text is the sequence's own, which others feed: it never has much to catch up with.
  std::size_t most_rows() const override { return 1; }
  void Truncate(std::size_t length) override;
  Result<std::span<const float>> Feed(std::span<const TokenId> tokens) override;
  void Rest() override;

 private:
  Session& session_;
  RequestId request_;
  std::optional<std::size_t> text_;  // tokens that the sequence held before the draft under way
};

}  // namespace troupe
