// Controls: drafts that are no good, from a drafter that is sure of them. What speculation costs at
// worst is measured with these.
#pragma once

#include "base/rng.h"
#include "text/draft/drafter.h"

namespace troupe {

class ControlDrafter final : public Drafter {
 public:
  enum class Kind {
    kWrong,   // the same token over and over
    kRandom,  // tokens of the text so far, drawn by chance
  };
  explicit ControlDrafter(Kind kind) : kind_(kind), rng_(1) {}

  DraftSource source() const override { return DraftSource::kControl; }
  void Append(std::span<const TokenId> tokens, Part part) override;
  Draft Propose(std::size_t most) override;

 private:
  static constexpr std::size_t kRemembered = 256;
  static constexpr std::size_t kSure = 64;

  Kind kind_;
  Rng rng_;
  std::vector<TokenId> seen_;
};

}  // namespace troupe
