#include "expert/card/card_speeds.h"

namespace troupe {
namespace {

void Note(RowCurve& curve, std::uint32_t experts, std::uint32_t rows, double seconds) {
  if (experts == 0 || seconds < 0) return;
  curve.Note(static_cast<double>(rows) / experts, seconds / experts);
}

}  // namespace

void CardSpeeds::NoteCard(std::uint32_t experts, std::uint32_t rows, double seconds) {
  if (first_) {
    first_ = false;
    return;
  }
  Note(card_, experts, rows, seconds);
}

void CardSpeeds::NoteProcessor(std::uint32_t experts, std::uint32_t rows, double seconds) {
  Note(processor_, experts, rows, seconds);
}

}  // namespace troupe
