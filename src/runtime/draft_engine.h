// An engine that guesses for another one (text/draft/draft_model.h): its sequences stay open, a
// seat each, with what their last text has left in them. A text that begins alike, as the next turn
// of a chat does, goes on from there; each sequence forgets what differs. Threads: one at a time.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "runtime/engine.h"
#include "runtime/session.h"
#include "text/draft/draft_model.h"

namespace troupe {

class DraftEngine final : public DraftModel {
 public:
  // Takes all sequences of the engine, which must outlive it, as it must outlive what it gives.
  explicit DraftEngine(Engine& engine);

  std::unique_ptr<DraftSequence> Begin(std::span<const TokenId> text) override;

 private:
  struct Seat {
    Session session;
    bool taken = false;
  };
  class Sequence;

  std::uint32_t chunk_;
  std::vector<Seat> seats_;
};

}  // namespace troupe
