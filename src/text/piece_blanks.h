// How SentencePiece writes blanks in its pieces: as U+2581, and back.
#pragma once

#include <string>
#include <string_view>

namespace troupe {

inline constexpr std::string_view kPieceBlank = "\xE2\x96\x81";

// What a piece stands for.
inline std::string WithBlanks(std::string_view piece) {
  std::string text;
  while (!piece.empty()) {
    const bool is_blank = piece.starts_with(kPieceBlank);
    text += is_blank ? ' ' : piece[0];
    piece.remove_prefix(is_blank ? kPieceBlank.size() : 1);
  }
  return text;
}

}  // namespace troupe
