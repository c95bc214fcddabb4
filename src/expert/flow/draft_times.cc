#include "expert/flow/draft_times.h"

#include <algorithm>

namespace troupe {
namespace {

constexpr double kNewDraftShare = 0.2;  // of the running mean that a new measurement is

}  // namespace

void DraftTimes::NoteDraft(std::size_t tokens, double seconds) {
  if (tokens == 0) return;
  const double token = seconds / static_cast<double>(tokens);
  token_ = token_ == 0 ? token : token_ + kNewDraftShare * (token - token_);
}

void DraftTimes::NoteRead(std::size_t tokens, double seconds) {
  if (tokens > 0) reading_.Note(static_cast<double>(tokens), seconds);
}

DraftCost DraftTimes::Cost(std::size_t behind, std::size_t text_left) const {
  return {.a_token = token_,
          .catch_up = behind == 0 ? 0 : reading_.At(static_cast<double>(behind)),
          .text_left = static_cast<double>(std::max<std::size_t>(text_left, 1))};
}

}  // namespace troupe
