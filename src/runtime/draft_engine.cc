#include "runtime/draft_engine.h"

#include <algorithm>
#include <utility>

namespace troupe {

class DraftEngine::Sequence final : public DraftSequence {
 public:
  Sequence(Seat& seat, std::uint32_t chunk) : seat_(seat), chunk_(chunk) { seat_.taken = true; }
  ~Sequence() override { seat_.taken = false; }

  std::span<const TokenId> tokens() const override { return seat_.session.tokens(); }
  std::size_t most_tokens() const override {
    return seat_.session.tokens().size() + seat_.session.room();
  }
  std::size_t most_rows() const override { return chunk_; }
  void Truncate(std::size_t length) override { seat_.session.Truncate(length); }
  Result<std::span<const float>> Feed(std::span<const TokenId> tokens) override {
    TROUPE_RETURN_IF_ERROR(seat_.session.Feed(tokens));
    return seat_.session.logits();
  }

 private:
  Seat& seat_;
  std::uint32_t chunk_;
};

DraftEngine::DraftEngine(Engine& engine) : chunk_(engine.plan().memory.chunk) {
  const std::uint32_t seats = engine.plan().memory.sequences;
  seats_.reserve(seats);
  for (std::uint32_t seat = 0; seat < seats; ++seat) {
    Result<Session> session = Session::Create(engine);
    TROUPE_CHECK(session.ok());  // its plan has room for all of them
    seats_.push_back({.session = std::move(session).value()});
  }
}

std::unique_ptr<DraftSequence> DraftEngine::Begin(std::span<const TokenId> text) {
  Seat* best = nullptr;
  std::ptrdiff_t best_common = -1;
  for (Seat& seat : seats_) {
    if (seat.taken) continue;
    const std::span<const TokenId> tokens = seat.session.tokens();
    const std::ptrdiff_t common = std::ranges::mismatch(text, tokens).in1 - text.begin();
    // Among seats that know nothing of the text, one that holds little costs others little.
    const bool holds_less =
        best != nullptr && common == best_common && tokens.size() < best->session.tokens().size();
    if (common > best_common || holds_less) best = &seat, best_common = common;
  }
  if (best == nullptr) return nullptr;
  return std::make_unique<Sequence>(*best, chunk_);
}

}  // namespace troupe
