// Who answers the experts of a layer where a card lies beside the processor: both at the same time,
// two lanes that shall end together (as lane_balance.h, with a cost for each expert). The card
// takes from the top: what lies in its memory, most rows first, then what is worth a copy on the
// spot; the processor takes from the bottom. A card that is slower than the processor gets what it
// can answer in the time that the processor takes for the rest, which may be nothing. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "expert/card/card_speeds.h"

namespace troupe {

struct CardAsk {
  std::uint32_t rows = 0;
  bool in_card = false;
  bool may_copy = false;    // it is not there, and its weights are in memory
  double away_seconds = 0;  // until the processor has its weights
};

enum class Answerer : std::uint8_t {
  kProcessor,
  kCard,
  kCopied,  // the card, once its weights were copied
};

struct CardSplit {
  std::vector<Answerer> answers;  // of each ask
  double card_seconds = 0, processor_seconds = 0;
};

CardSplit SplitLanes(std::span<const CardAsk> asks, const CardSpeeds& speeds);

class CardLanes {
 public:
  // A layer's asks. Where the card gets nothing for long, an expert of its own is tried there, as
  // nothing else would tell that it has become quick again.
  CardSplit Split(std::span<const CardAsk> asks);
  // Whether a copy into the card may be of use: it gets one of a layer's `asks` at least.
  bool IsWorthCopies(std::uint32_t asks) const;

  CardSpeeds& speeds() { return speeds_; }
  const CardSpeeds& speeds() const { return speeds_; }
  std::uint64_t trials() const { return trials_; }

 private:
  static constexpr std::uint32_t kTryAfter = 256;  // layers

  CardSpeeds speeds_;
  std::uint32_t passed_over_ = 0;  // layers since the card got something
  std::uint64_t trials_ = 0;
};

}  // namespace troupe
