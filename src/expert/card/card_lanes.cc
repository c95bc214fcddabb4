#include "expert/card/card_lanes.h"

#include <algorithm>

namespace troupe {
namespace {

// Those that the card may answer, best first.
std::vector<std::size_t> CardOrder(std::span<const CardAsk> asks, bool copies) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < asks.size(); ++i) {
    if (asks[i].in_card || (copies && asks[i].may_copy)) order.push_back(i);
  }
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    if (asks[a].in_card != asks[b].in_card) return asks[a].in_card;
    return asks[a].rows > asks[b].rows;
  });
  return order;
}

}  // namespace

CardSplit SplitLanes(std::span<const CardAsk> asks, const CardSpeeds& speeds) {
  CardSplit split{.answers = std::vector<Answerer>(asks.size(), Answerer::kProcessor)};
  // What a copy on the spot is worth is not guessed.
  const bool copies = speeds.known() && speeds.CopySeconds().has_value();
  const std::vector<std::size_t> order = CardOrder(asks, copies);
  std::vector<bool> either(asks.size());
  for (const std::size_t i : order) either[i] = true;
  for (std::size_t i = 0; i < asks.size(); ++i) {
    if (!either[i]) split.processor_seconds += speeds.ProcessorSeconds(asks[i].rows);
  }
  std::size_t top = 0, bottom = order.size();
  while (top < bottom) {
    const CardAsk& first = asks[order[top]];
    const CardAsk& last = asks[order[bottom - 1]];
    const double with_first = split.card_seconds + speeds.CardSeconds(first.rows) +
                              (first.in_card ? 0 : *speeds.CopySeconds());
    const double with_last =
        split.processor_seconds + speeds.ProcessorSeconds(last.rows) + last.away_seconds;
    if (with_first <= with_last) {
      split.answers[order[top++]] = first.in_card ? Answerer::kCard : Answerer::kCopied;
      split.card_seconds = with_first;
    } else {
      --bottom;
      split.processor_seconds = with_last;
    }
  }
  return split;
}

CardSplit CardLanes::Split(std::span<const CardAsk> asks) {
  CardSplit split = SplitLanes(asks, speeds_);
  const auto own = std::ranges::find_if(asks, &CardAsk::in_card);
  if (own == asks.end()) return split;
  const bool gets = std::ranges::any_of(
      split.answers, [](Answerer answerer) { return answerer != Answerer::kProcessor; });
  passed_over_ = gets ? 0 : passed_over_ + 1;
  if (passed_over_ < kTryAfter) return split;
  passed_over_ = 0;
  ++trials_;
  split.answers[static_cast<std::size_t>(own - asks.begin())] = Answerer::kCard;
  return split;
}

bool CardLanes::IsWorthCopies(std::uint32_t asks) const {
  return !speeds_.known() || speeds_.CardSeconds(1) <= asks * speeds_.ProcessorSeconds(1);
}

}  // namespace troupe
